"""A worker that is killed in the middle of a large archive goes on where it was."""

import pytest
from world import PHONES, open_world

MIB = 1 << 20
ONE = ("--account", PHONES[0])
# 200 MiB on a busy machine without a compiler, where both sides encrypt in Python.
SLOW_SECONDS = 200


@pytest.mark.timeout(300)
async def test_a_killed_download_is_gone_on_with_and_less_than_a_tenth_is_fetched_twice(
    tmp_path, database_url
):
    async with open_world(tmp_path, database_url, "--record-all-calls") as world:
        await world.post_archive(world.sources[0], size=200 * MIB)
        killed = await world.run("run", "--once", *ONE, faults="kill=telegram.upload.GetFile:after:100")
        assert killed == {"signal": 9}
        before = len(await world.admin.calls("upload.getFile"))
        await world.drain(*ONE, seconds=SLOW_SECONDS)
        fetched = len(await world.admin.calls("upload.getFile"))
        assert before >= 100
        assert fetched <= 1.1 * 201, f"{before} ranges before the kill, {fetched - before} after it"
        await world.check_invariants()


@pytest.mark.long
async def test_a_download_killed_again_and_again_still_ends(tmp_path, database_url):
    async with open_world(tmp_path, database_url, "--record-all-calls") as world:
        await world.post_archive(world.sources[0], size=24 * MIB)
        for place in ("workspace.write:after:3", "workspace.mark:before:3", "workspace.adopt:after:1"):
            ended = await world.run("run", "--once", *ONE, faults=f"kill={place}")
            assert ended == {"signal": 9}, place
            await world.until_buried()
        await world.drain(*ONE)
        await world.check_invariants()
