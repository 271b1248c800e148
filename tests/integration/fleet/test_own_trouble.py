"""What befalls a worker is no fault of the set it works on, and is over for the set when it is over."""

import asyncio
import contextlib
import uuid
from types import SimpleNamespace

import asyncpg
import pytest
from breakable_line import line_to
from claims import claim_next
from hang_guard import HANG_SECONDS, until
from lost_reply import LosesOneReply
from manual_clock import ManualClock

from worker.clock import SystemClock
from worker.config.settings import LeaseSettings, Settings
from worker.errors import SetFailedError, WorkerTroubleError
from worker.fleet.lease import lease_account
from worker.fleet.ready_sets import ReadySets
from worker.pipeline.deps import Silent
from worker.pipeline.run import give_back
from worker.store import sets, workers
from worker.store.connect import COMMAND_SECONDS
from worker.store.database import Database
from worker.workspace.folder import Workspace

pytestmark = pytest.mark.usefixtures("standing_fleet_time")
LONG = LeaseSettings(lease_secs=2 * HANG_SECONDS, heartbeat_secs=HANG_SECONDS)
_WORLD = """
    INSERT INTO accounts (phone, state) VALUES ('+1', 'ready');
    INSERT INTO channels (telegram_id, title, kind, is_source) VALUES (1, 'source', 'channel', true);
    INSERT INTO memberships (account_id, channel_id, visible_from) VALUES (1, 1, 0);
    INSERT INTO peers (account_id, telegram_id, access_hash) VALUES (1, 1, 1);
    WITH made AS (
        INSERT INTO archive_sets (channel_id, name, format, state, part_count, total_size, lead_document_id, posted_at)
        VALUES (1, '1.zip', 'zip', 'ready', 1, 10, 7, now()) RETURNING id
    )
    INSERT INTO source_files (channel_id, message_id, document_id, file_name, size, posted_at, set_id, part_number)
    SELECT 1, 1, 7, '1.zip', 10, now(), id, 0 FROM made;
"""
_STANDS = """
    SELECT state, attempts, reason,
           CAST(ceil(extract(epoch FROM greatest(not_before - fleet_now(), interval '0'))) AS integer)
    FROM archive_sets
"""


@pytest.fixture
async def raw(database_url):
    connection = await asyncpg.connect(database_url)
    await connection.execute(_WORLD)
    yield connection
    await connection.close()


@pytest.fixture
async def far(database_url):
    """The database at the end of a line that can be cut."""
    async with line_to(database_url) as (line, address):
        yield line, Database(address)
        await line.mend()


@contextlib.asynccontextmanager
async def _at_work(raw, database_url, database, folder):
    """An account at work on the one set there is, with what the steps need until they speak to Telegram."""
    worker_id, near = uuid.uuid4(), Database(database_url)
    await workers.register(near, worker_id, host="h", pid=1, version="0", address=None)
    claim = await claim_next(near, 1, worker_id)
    async with lease_account(near, SystemClock(), LONG, 1, worker_id) as lease:
        deps = SimpleNamespace(
            settings=Settings(),
            database=database,
            account=SimpleNamespace(id=1),
            workspace=Workspace(folder, worker_id),
            clock=ManualClock(),
            watcher=Silent(),
            trust=lease,
        )
        yield deps, claim
    await near.close()


async def _work(deps, claim) -> None:
    """The way a set goes: what its handler raises is told to whoever gave it out."""
    ready = ReadySets(SimpleNamespace(clock=deps.clock), deps, lambda: True, asyncio.Event())
    ready._in_flight += 1
    try:
        await ready.work_on(claim)
    except Exception as error:  # noqa: BLE001 - as the runner does
        await ready.failed(claim, error)


async def _once_it_is_back(line, deps, task) -> None:
    """Let the outage last until the worker waits for its end."""

    async def waits():
        return deps.clock.sleeping or task.done()

    await until(waits)
    await line.mend()

    async def ended():
        await deps.clock.advance(60)
        return task.done()

    await until(ended)
    await task


async def test_a_set_given_back_while_postgresql_is_away_keeps_its_own_reason(
    raw, database_url, far, tmp_path
):
    line, database = far
    async with _at_work(raw, database_url, database, tmp_path) as (deps, claim):
        await line.cut()
        giving = asyncio.create_task(give_back(deps, claim, SetFailedError("it is broken")))
        await _once_it_is_back(line, deps, giving)
    assert tuple(await raw.fetchrow(_STANDS)) == ("ready", 1, "it is broken", 60)
    await database.close()


async def test_a_set_that_lost_postgresql_on_its_way_waits_no_longer_than_the_outage(
    raw, database_url, far, tmp_path
):
    line, database = far
    async with _at_work(raw, database_url, database, tmp_path) as (deps, claim):
        await line.cut()
        working = asyncio.create_task(_work(deps, claim))
        await _once_it_is_back(line, deps, working)
    state, attempts, reason, wait = await raw.fetchrow(_STANDS)
    assert (state, attempts, wait) == ("ready", 0, 0)
    assert "did not do it" in reason
    await database.close()


async def test_a_disk_that_does_not_work_is_no_fault_of_the_set(raw, database_url, database, tmp_path):
    in_the_way = tmp_path / "file"
    in_the_way.touch()
    async with _at_work(raw, database_url, database, in_the_way / "workspace") as (deps, claim):
        await _work(deps, claim)
    state, attempts, reason, wait = await raw.fetchrow(_STANDS)
    assert (state, attempts, wait) == ("ready", 0, 60)
    assert reason.startswith("this host does not do what it should: Not a directory")


async def test_a_set_whose_giving_back_got_no_answer_is_given_back_once(raw, database_url, tmp_path):
    forgetful = LosesOneReply(database_url)
    async with _at_work(raw, database_url, forgetful, tmp_path) as (deps, claim):
        giving = asyncio.create_task(give_back(deps, claim, SetFailedError("it is broken")))

        async def ended():
            await deps.clock.advance(60)
            return giving.done()

        await until(ended)
        assert await giving == "waiting"
    assert tuple(await raw.fetchrow(_STANDS)) == ("ready", 1, "it is broken", 60)
    await forgetful.close()


async def test_a_primary_that_became_a_standby_is_the_databases_trouble(database, database_url, raw):
    (name,) = await raw.fetchrow("SELECT current_database()")
    await raw.execute(f'ALTER DATABASE "{name}" SET default_transaction_read_only = on')
    with pytest.raises(WorkerTroubleError, match="read-only"):
        await workers.register(database, uuid.uuid4(), host="h", pid=1, version="0", address=None)


async def test_eight_outages_end_no_set_whose_worker_could_not_be_heard(
    raw, database_url, far, advance_fleet_time
):
    line, database = far
    near, me = Database(database_url), uuid.uuid4()
    await workers.register(near, me, host="h", pid=1, version="0", address=None)
    for _ in range(8):
        other = uuid.uuid4()
        await workers.register(near, other, host="h", pid=2, version="0", address=None)
        await claim_next(near, 1, other)
        await line.cut()
        with pytest.raises(WorkerTroubleError):
            await workers.heartbeat(database, me, 0)
        await line.mend()
        await advance_fleet_time(60)
        await workers.bury_dead_workers(database, 30)
        assert await sets.release_dead_claims(database, me) == 1
    assert await raw.fetchval("SELECT state FROM archive_sets") == "ready"
    await near.close()
    await database.close()


async def test_who_waited_for_an_answer_is_not_judged_before_it_can_be_heard(
    raw, database_url, far, advance_fleet_time
):
    line, database = far
    clock, near, other = ManualClock(), Database(database_url), uuid.uuid4()
    judge = Database(database.address, clock=clock)
    await workers.register(near, other, host="h", pid=2, version="0", address=None)
    await claim_next(near, 1, other)
    await line.cut()
    with pytest.raises(WorkerTroubleError):
        await workers.heartbeat(judge, uuid.uuid4(), 0)
    await line.mend()
    await clock.advance(COMMAND_SECONDS + 5)
    await advance_fleet_time(60)
    await workers.bury_dead_workers(judge, 30)
    assert await sets.release_dead_claims(judge, uuid.uuid4()) == 1
    assert await raw.fetchval("SELECT unended FROM archive_sets") == 0
    for opened in (near, judge, database):
        await opened.close()


async def test_a_database_that_answers_again_was_away_for_a_while(far):
    line, database = far
    clock = ManualClock()
    timed = Database(database.address, clock=clock)
    assert not timed.was_away(30)
    await line.cut()
    with pytest.raises(WorkerTroubleError):
        await workers.heartbeat(timed, uuid.uuid4(), 0)
    await line.mend()
    assert timed.was_away(30)
    await clock.advance(30)
    assert not timed.was_away(30)
    await timed.close()
