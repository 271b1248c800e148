"""The status of a fleet whose rows are in a real database."""

import asyncpg
import pytest
from fleet_rows import execute, insert_fleet

from worker.status.model import SyncState
from worker.status.read import read_status
from worker.store.pauses import PauseStore
from worker.store.progress import StepProgress, write_progress


@pytest.fixture
async def fleet(database, database_url):
    await insert_fleet(database_url)

    async def read():
        return await read_status(database, silent_after=30.0)

    return read


async def test_an_empty_database_has_a_status(database):
    status = await read_status(database, silent_after=30.0)
    assert status.sync.state is SyncState.STOPPED
    assert (status.accounts, status.workers, status.sync.sets, status.activity.total) == ((), (), {}, 0)


async def test_an_account_is_run_by_the_worker_whose_lease_has_not_ended(fleet):
    status = await fleet()
    assert [account.worker for account in status.accounts] == ["nas:4711", None, None]
    assert [account.premium for account in status.accounts] == [True, False, False]
    (worker,) = status.workers
    assert worker.uptime == pytest.approx(7200, abs=60)
    assert (worker.memory_bytes, worker.silent, worker.accounts) == (45_200_000, False, 1)


async def test_a_worker_falls_silent_with_the_databases_time(fleet, advance_fleet_time):
    await advance_fleet_time(31)
    status = await fleet()
    assert status.workers[0].silent
    assert status.sync.state is SyncState.STOPPED


async def test_calls_are_those_of_this_minute_and_the_four_before(fleet):
    activity = (await fleet()).activity
    assert activity.by_method == {"messages.getHistory": 68, "upload.getFile": 7}
    assert next(iter(activity.by_method)) == "messages.getHistory"
    assert (activity.total, activity.failed) == (75, 1)


async def test_only_waits_in_force_are_shown_with_what_was_asked_and_what_is_left(fleet, advance_fleet_time):
    (wait,) = (await fleet()).rate_limits.active_waits
    assert (wait.account, wait.method, wait.wait_seconds) == ("Ada", "messages.getHistory", 420)
    assert wait.clears_in == pytest.approx(392, abs=30)
    await advance_fleet_time(393)
    assert not (await fleet()).rate_limits.restricted


async def test_escalations_of_the_last_day_and_paces_that_have_not_faded_are_shown(fleet):
    limits = (await fleet()).rate_limits
    assert [(item.account, item.floods) for item in limits.escalations] == [("Ada", 3)]
    assert [item.account for item in limits.slowed] == ["Ada"]
    assert limits.slowed[0].factor == pytest.approx(2.5, abs=0.1)


async def test_progress_counts_channels_read_to_their_end_messages_and_sets_by_state(fleet):
    sync = (await fleet()).sync
    assert (sync.channels_scanned, sync.channels_total, sync.messages_scanned) == (1, 2, 120)
    assert sync.sets == {"indexed": 1, "claimed": 1, "ready": 3, "failed": 1}
    assert sync.state is SyncState.RUNNING


async def test_what_waits_has_its_reason_and_its_time(fleet):
    sync = (await fleet()).sync
    waiting = {item.what: item for item in sync.waiting}
    assert sync.held_back == 1
    assert waiting["Four.zip in Print Vault"].why == "busy elsewhere"
    assert waiting["Four.zip in Print Vault"].resumes_in == pytest.approx(3600, abs=30)
    assert waiting["Six.zip in Print Vault"].why == "given up: it is broken"
    assert waiting["account 3"].why == "has to log in again"
    assert "Five.zip in Print Vault" not in waiting


async def test_a_claimed_set_shows_before_its_first_byte_and_then_its_step_speed_and_end(
    fleet, database, advance_fleet_time
):
    (before,) = (await fleet()).sync.current
    assert (before.name, before.account, before.step, before.eta) == ("Two.zip", "Ada", "start", None)
    await write_progress(database, 1, [StepProgress("Two.zip", "fetch", 100, 1000)])
    await advance_fleet_time(100)
    await write_progress(database, 1, [StepProgress("Two.zip", "fetch", 600, 1000)])
    (current,) = (await fleet()).sync.current
    assert (current.step, current.done_bytes, current.total_bytes) == ("fetch", 600, 1000)
    assert current.bytes_per_second == pytest.approx(5, rel=0.2)
    assert current.eta == pytest.approx(80, rel=0.2)


async def test_a_new_step_starts_the_measurement_of_speed_anew(fleet, database, advance_fleet_time):
    await write_progress(database, 1, [StepProgress("Two.zip", "fetch", 1000, 1000)])
    await advance_fleet_time(1000)
    await write_progress(database, 1, [StepProgress("Two.zip", "upload", 10, 1000)])
    await advance_fleet_time(10)
    await write_progress(database, 1, [StepProgress("Two.zip", "upload", 510, 1000)])
    (current,) = (await fleet()).sync.current
    assert current.bytes_per_second == pytest.approx(50, rel=0.5)


async def test_what_an_earlier_attempt_or_a_finished_set_left_is_not_shown(fleet, database, database_url):
    await write_progress(database, 1, [StepProgress("Two.zip", "upload", 900, 1000)])
    await write_progress(database, 2, [StepProgress("One.zip", "upload", 1, 1)])
    await execute(
        database_url,
        "UPDATE archive_sets SET claimed_at = fleet_now() + interval '1 second' WHERE state = 'claimed'",
    )
    (current,) = (await fleet()).sync.current
    assert (current.name, current.step) == ("Two.zip", "start")


async def test_sets_that_are_no_longer_reported_are_removed(database, database_url):
    await insert_fleet(database_url)
    await write_progress(
        database, 1, [StepProgress("A.zip", "fetch", 1, 2), StepProgress("B.zip", "fetch", 1, 2)]
    )
    await write_progress(database, 1, [StepProgress("B.zip", "upload", 1, 2)])
    await write_progress(database, 2, [])
    connection = await asyncpg.connect(database_url)
    rows = await connection.fetch("SELECT account_id, set_name, step FROM account_progress")
    await connection.close()
    assert [tuple(row) for row in rows] == [(1, "B.zip", "upload")]


async def test_a_pause_is_shown_with_its_name_its_end_and_who_wished_it(fleet, database):
    store = PauseStore(database)
    await store.pause(channel=2, seconds=7200, by="eve@nas")
    (pause,) = (await fleet()).sync.pauses
    assert (pause.what, pause.by) == ("Print Vault", "eve@nas")
    assert pause.resumes_in == pytest.approx(7200, abs=30)
    await store.pause(by="eve@nas")
    sync = (await fleet()).sync
    assert sync.state is SyncState.PAUSED
    assert "everything" in {each.what for each in sync.pauses}


async def test_w2_a_set_under_a_name_that_no_index_has_room_for_shows_its_progress_too(
    fleet, database, database_url
):
    name = "".join(chr(0x4E00 + number) for number in range(3000))
    await execute(database_url, f"UPDATE archive_sets SET name = '{name}.zip' WHERE name = 'Two.zip'")
    # Another one that begins like it takes no more room, and none of its place in what is written.
    steps = [StepProgress(f"{name}{end}", "fetch", 600, 1000) for end in ("x.zip", ".zip")]
    await write_progress(database, 1, steps)
    (current,) = (await fleet()).sync.current
    assert (current.step, current.done_bytes) == ("fetch", 600)
