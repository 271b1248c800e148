"""Parts that are posted again, or late: the set that lacks them gets them, whatever order they come in."""

import pytest
from worker_command import worker


def _damaged(path):
    """The same name and size, and bytes that belong to no archive."""
    (path.parent / "damaged").mkdir(exist_ok=True)
    copy = path.parent / "damaged" / path.name
    copy.write_bytes(bytes(path.stat().st_size))
    return copy


@pytest.mark.parametrize("order", ["at once", "later"])
async def test_w4_a_part_posted_again_replaces_the_damaged_one(world, run, sets, order):
    first, second, last = world.make_volumes()
    await world.post_files(world.sources[0], [first, second, _damaged(last)])
    if order == "later":
        await run()
        assert (await sets())["volumes-1.zip"][0] == "collecting"
    await world.post_files(world.sources[0], [last])
    await run()
    assert await sets() == {"volumes-1.zip": ("indexed", None, 3)}
    published = [m["file_name"] for m in await world.admin.messages(world.destination) if m["document_id"]]
    assert published == [first.name, second.name, last.name]
    old = await world.fetch("SELECT file_name FROM source_files WHERE superseded_by IS NOT NULL")
    assert [row["file_name"] for row in old] == [last.name]


@pytest.mark.parametrize("order", ["at once", "later"])
async def test_w4_each_part_posted_again_is_tried_when_the_newest_is_damaged_too(world, run, order):
    first, second, last = world.make_volumes()
    await world.post_files(world.sources[0], [first, second, _damaged(last)])
    if order == "later":
        await run()
    await world.post_files(world.sources[0], [last])
    await world.post_files(world.sources[0], [_damaged(last)])
    await run()
    rows = await world.fetch("SELECT part_count FROM archive_sets WHERE state = 'indexed'")
    assert [row["part_count"] for row in rows] == [3]


async def test_w4_a_part_posted_again_after_its_set_was_found_not_whole_replaces_the_damaged_one(
    world, run, sets
):
    first, second, last = world.make_volumes()
    await world.post_files(world.sources[0], [first, _damaged(second), last])
    world.settings["WORKER_FLEET__RETRY_BASE_SECS"] = "600"
    await run()
    assert "it is not whole" in (await sets())["volumes-1.zip"][1]
    await world.post_files(world.sources[0], [second])
    await run()
    assert await sets() == {"volumes-1.zip": ("indexed", None, 3)}


@pytest.mark.parametrize("order", ["at once", "later"])
async def test_w4_each_part_posted_again_is_tried_when_the_damage_shows_only_when_they_are_fetched(
    world, run, order
):
    # More than a proof reads of contents on a server.
    first, second, last = world.make_volumes(size=9 * 1024 * 1024)
    world.settings["WORKER_FLEET__RETRY_BASE_SECS"] = "600"
    await world.post_files(world.sources[0], [first, _damaged(second), last])
    if order == "later":
        await run()
    for again in (second, _damaged(second), _damaged(second)):
        await world.post_files(world.sources[0], [again])
    await run()
    rows = await world.fetch("SELECT part_count FROM archive_sets WHERE state = 'indexed'")
    assert [row["part_count"] for row in rows] == [3]


@pytest.mark.parametrize("order", ["at once", "later"])
async def test_w4_a_first_part_posted_again_replaces_the_damaged_one(world, run, sets, order):
    first, second, last = world.make_volumes()
    await world.post_files(world.sources[0], [_damaged(first), second, last])
    if order == "later":
        await run()
        assert "it is not whole" in (await sets())["volumes-1.zip"][1]
    await world.post_files(world.sources[0], [first])
    await run()
    assert await sets() == {"volumes-1.zip": ("indexed", None, 3)}


async def test_w4_a_retry_finds_the_part_that_came_while_its_set_was_left_out(world, run, sets):
    first, second, last = world.make_volumes()
    await world.post_files(world.sources[0], [first, last])
    await run()
    (row,) = await world.fetch("SELECT id FROM archive_sets")
    assert (await worker("sets", "skip", str(row["id"]), database_url=world.database_url)).code == 0
    await world.post_files(world.sources[0], [second])
    await run()
    assert len(await world.fetch("SELECT 1 FROM archive_sets")) == 2
    ended = await worker("sets", "retry", str(row["id"]), database_url=world.database_url)
    assert ended.code == 0, ended.err
    await run()
    assert await sets() == {"volumes-1.zip": ("indexed", None, 3)}
    await world.check_invariants()
