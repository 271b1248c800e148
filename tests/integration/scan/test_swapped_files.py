"""A file that was swapped, and nobody told: whoever asks for it notices, and the row is replaced."""

import pytest


@pytest.mark.parametrize("noticed_by", ["prove", "fetch"])
async def test_w4_whoever_meets_another_file_than_was_written_down_replaces_its_row(
    world, run, sets, noticed_by
):
    source = world.sources[0]
    archive = await world.post_archive(source)
    other = await world.post_archive(world.sources[1])
    kill = {"prove": "db.proofs.next:before:1", "fetch": "db.sets.claim:after:1"}[noticed_by]
    await run(faults=f"kill={kill}", ends={"signal": 9})
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
    states = sorted(row["state"] for row in await world.fetch("SELECT state FROM archive_sets"))
    assert states == ["duplicate", "indexed"], archive
