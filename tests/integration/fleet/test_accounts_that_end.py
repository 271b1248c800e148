"""What Telegram says about an account becomes its state, with the reason, and costs no set anything."""

import pytest
from world import PHONES, open_world

FIRST, _ = PHONES
STANDS = "SELECT state, state_reason FROM accounts WHERE phone = $1"


@pytest.fixture
async def world(tmp_path, database_url):
    async with open_world(tmp_path, database_url, calm=True) as opened:
        yield opened


async def test_a_frozen_account_rests_until_a_person_enables_it_and_a_banned_one_is_banned(world):
    await world.post_archive(world.sources[0])
    rule = await world.admin.add_rule(
        "messages.sendMedia", "error", code=420, text="FROZEN_METHOD_INVALID", account=FIRST, count=0
    )
    assert await world.run("run", "--once", "--account", FIRST) == {"exit": 1}
    assert [tuple(row) for row in await world.fetch(STANDS, FIRST)] == [
        ("frozen", "messages.SendMedia: 420 FROZEN_METHOD_INVALID")
    ]
    (row,) = await world.fetch("SELECT state, attempts, not_before <= fleet_now() AS due FROM archive_sets")
    assert tuple(row) == ("ready", 0, True)
    assert await world.fetch("SELECT 1 FROM flood_wait_state") == [], "no wait ends it"

    await world.admin.lift_rule(rule)
    assert await world.run("accounts", "enable", FIRST) == {"exit": 0}
    await world.admin.ban_account(FIRST)
    assert await world.run("run", "--once", "--account", FIRST) == {"exit": 1}
    ((state, reason),) = [tuple(row) for row in await world.fetch(STANDS, FIRST)]
    assert state == "banned"
    assert reason.endswith("401 USER_DEACTIVATED_BAN")
