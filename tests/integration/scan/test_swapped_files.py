"""A file that was swapped, and nobody told: whoever asks for it notices, and the row is replaced."""

import pytest


@pytest.mark.parametrize("noticed_by", ["prove", "fetch"])
async def test_w4_whoever_meets_another_file_than_was_written_down_replaces_its_row(
    world, run, sets, noticed_by
):
    source = world.sources[0]
    await world.post_archive(source)
    kill = {"prove": "db.scan.page:after:1", "fetch": "workspace.open_set:before:1"}[noticed_by]
    await run(faults=f"kill={kill}", ends={"signal": 9})
    other = await world.post_archive(world.sources[1])
    document = {
        m["file_name"]: m["document_id"] for c in world.sources for m in await world.admin.messages(c)
    }
    (message,) = [m["id"] for m in await world.admin.messages(source) if m["document_id"]]
    await world.admin.replace_document(source, message, document[other.name])
    # As if the edit had been told to somebody who died of it.
    await world.fetch("UPDATE scan_cursors SET pts = 1000000")
    await world.until_buried()
    await run()
    rows = await world.fetch(
        "SELECT f.file_name FROM source_files f JOIN channels c ON c.id = f.channel_id WHERE c.telegram_id = $1",
        source,
    )
    assert [row["file_name"] for row in rows] == [other.name]
    sets = await world.fetch("SELECT name, state, reason FROM archive_sets ORDER BY state")
    assert [tuple(row) for row in sets] == [
        (other.name, "duplicate", None),
        (other.name, "indexed", None),
        ("archive-1.zip", "skipped", "its messages are gone from their channel"),
    ]
