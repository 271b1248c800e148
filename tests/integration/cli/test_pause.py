"""``worker pause`` and ``worker resume``: real processes on a real database."""

import json

import pytest
from fleet_rows import insert_fleet
from worker_command import worker

from worker.store.pauses import PauseStore


@pytest.fixture
async def fleet_url(database_url):
    await insert_fleet(database_url)
    return database_url


async def _pauses(database):
    return sorted((pause.account or 0, pause.channel or 0) for pause in await PauseStore(database).pauses())


async def test_a_pause_of_everything_is_shown_with_who_wished_it_and_ends_with_resume(fleet_url, database):
    paused = await worker("pause", "--for", "2h", database_url=fleet_url)
    assert (paused.code, paused.out, paused.err) == (0, "the fleet is paused for 2h 00m\n", "")
    sync = json.loads((await worker("status", "--json", database_url=fleet_url)).out)["sync"]
    assert (sync["state"], sync["paused"]) == ("paused", True)
    assert sync["resumes_in_seconds"] == pytest.approx(7200, abs=60)
    assert "@" in sync["pauses"][0]["by"]
    resumed = await worker("resume", database_url=fleet_url)
    assert (resumed.code, resumed.out) == (0, "the fleet goes on\n")
    assert await _pauses(database) == []


@pytest.mark.parametrize("named", ["+10000000001", "10000000001", "@ada", "ada", "Ada", "1"])
async def test_an_account_is_meant_by_phone_username_name_or_number(fleet_url, database, named):
    ended = await worker("pause", "--account", named, database_url=fleet_url)
    assert (ended.code, ended.out) == (0, "Ada is paused until: worker resume\n")
    assert await _pauses(database) == [(1, 0)]


@pytest.mark.parametrize("named", ["1001", "@models", "model archive"])
async def test_a_channel_is_meant_by_id_username_or_title(fleet_url, database, named):
    ended = await worker("pause", "--channel", named, database_url=fleet_url)
    assert (ended.code, ended.out) == (0, "Model Archive is paused until: worker resume\n")
    assert await _pauses(database) == [(0, 1)]


async def test_resuming_one_leaves_the_others_and_says_what_still_holds_it(fleet_url, database):
    store = PauseStore(database)
    await store.pause()
    await store.pause(account=1)
    await store.pause(account=2)
    ended = await worker("resume", "--account", "Ada", database_url=fleet_url)
    assert ended.code == 0
    assert ended.out.splitlines()[0] == "Ada goes on"
    assert "still paused: the whole fleet" in ended.out
    assert await _pauses(database) == [(0, 0), (2, 0)]


async def test_resuming_what_was_not_paused_says_so(fleet_url):
    ended = await worker("resume", "--channel", "1002", database_url=fleet_url)
    assert (ended.code, ended.out) == (0, "Print Vault was not paused\n")


@pytest.mark.parametrize(
    ("arguments", "parts"),
    [
        (["pause", "--account", "nobody"], ["there is no account nobody", "worker status"]),
        (["resume", "--account", "+19998887766"], ["there is no account +1•••••••66"]),
        (["pause", "--channel", "@nowhere"], ["no account has seen a channel", "@nowhere", "exact title"]),
        (["pause", "--for", "soon"], ["'soon' is not a time", "2h"]),
        (["pause", "--for", "0m"], ["'0m' is not a time"]),
    ],
)
async def test_what_is_not_known_is_one_line_with_the_remedy(fleet_url, database, arguments, parts):
    ended = await worker(*arguments, database_url=fleet_url)
    assert (ended.code, ended.out, ended.err.count("\n")) == (2, "", 1)
    for part in parts:
        assert part in ended.err
    assert await _pauses(database) == []


async def test_cleanup_removes_what_is_old_and_no_wait_in_force(fleet_url):
    done = await worker("db", "cleanup", database_url=fleet_url)
    assert (done.code, done.err) == (0, "")
    assert done.out == "removed 1 count of calls, 1 line of activity, 1 flood wait\n"
    again = await worker("db", "cleanup", "--json", database_url=fleet_url)
    assert json.loads(again.out) == {"windows": 0, "activity": 0, "blocks": 0}
    status = json.loads((await worker("status", "--json", database_url=fleet_url)).out)
    assert status["rate_limits"]["restricted"] is True
