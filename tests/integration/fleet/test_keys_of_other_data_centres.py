"""The key that an account has agreed on with another data centre outlives the process that did."""

import pytest
from world import PHONES, open_world

ONE = ("--account", PHONES[0])


@pytest.fixture
async def world(tmp_path, database_url):
    async with open_world(tmp_path, database_url, calm=True) as opened:
        yield opened


async def _keys_seen(world) -> set[int]:
    return {connection["auth_key_id"] for connection in await world.admin.connections()}


async def test_the_next_process_fetches_from_there_with_the_key_that_is_kept(world):
    await world.post_archive(world.sources[0], dc_id=4)
    await world.drain(*ONE)
    exported, keys = await world.admin.calls("auth.exportAuthorization"), await _keys_seen(world)
    assert len(exported) == 1, "the first process had to agree on a key with data centre 4"
    (kept,) = await world.fetch("SELECT count(*) AS n FROM account_keys WHERE dc_id = 4 AND NOT is_main")
    assert kept["n"] == 1

    await world.post_archive(world.sources[0], dc_id=4)
    await world.drain(*ONE)
    await world.check_invariants()
    assert await world.admin.calls("auth.exportAuthorization") == exported
    assert await _keys_seen(world) == keys
