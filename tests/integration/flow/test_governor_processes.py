"""The governor across processes: real ones, on one database."""

import asyncio
import json
import os
import sys
from pathlib import Path

import asyncpg
import pytest
from hang_guard import HANG_SECONDS, until

from worker.clock import SystemClock
from worker.domain.calls import Call, Flood, FloodKind
from worker.errors import RetryableError
from worker.flow.governor import Governor
from worker.flow.keeper import Keeper
from worker.flow.limits import DEFAULT
from worker.flow.parts import BlockCache
from worker.store import notifications
from worker.store.database import Database
from worker.store.governor_store import GovernorStore

SCRIPT = Path(__file__).with_name("governor_process.py")
HISTORY = {"account": 1, "method": "messages.getHistory", "chat": 5}
SEARCH = {"account": 1, "method": "messages.search"}
_FLOODED = (
    "SELECT governor_flooded(1, '{method}', 0, 'FLOOD_WAIT', {seconds}, {seconds} + 1, '{method}', 0, '',"
    " 3, 3600, 300, 1, 1, 900)"
)


class Process:
    """A process that calls, and the lines it says."""

    def __init__(self, running) -> None:
        self.running = running

    @classmethod
    async def start(cls, url, **plan):
        return cls(
            await asyncio.create_subprocess_exec(
                *(sys.executable, str(SCRIPT), url, json.dumps(plan)),
                stdout=asyncio.subprocess.PIPE,
                env=os.environ | {"PYTHONPATH": str(SCRIPT.parents[3])},
            )
        )

    async def hear(self, key):
        """The next line that says this."""
        while line := await asyncio.wait_for(self.running.stdout.readline(), HANG_SECONDS):
            said = json.loads(line)
            if key in said:
                return said[key]
        raise AssertionError(f"the process ended without saying {key}")

    async def kill(self):
        if self.running.returncode is None:
            self.running.kill()
        await self.running.communicate()


@pytest.fixture
async def start(database_url):
    processes = []

    async def start(**plan):
        processes.append(await Process.start(database_url, **plan))
        return processes[-1]

    yield start
    for process in processes:
        await process.kill()


@pytest.fixture
async def sql(database_url):
    connection = await asyncpg.connect(database_url)
    await connection.execute("INSERT INTO accounts (phone) VALUES ('+1'), ('+2')")
    yield connection
    await connection.close()


@pytest.fixture
async def admissions(sql):
    """Every admission of a method class, by the database's clock."""
    await sql.execute("""
        CREATE TABLE admissions (at timestamptz, backend integer);
        CREATE FUNCTION note() RETURNS trigger LANGUAGE plpgsql AS $$
        BEGIN
            IF NEW.chat = 0 AND NEW.last_at > OLD.last_at THEN
                INSERT INTO admissions VALUES (NEW.last_at, pg_backend_pid());
            END IF;
            RETURN NEW;
        END $$;
        CREATE TRIGGER note AFTER UPDATE ON call_paces FOR EACH ROW EXECUTE FUNCTION note();
    """)

    async def read():
        rows = await sql.fetch(
            "SELECT extract(epoch FROM at)::float8 AS at, backend FROM admissions ORDER BY at"
        )
        return [row["at"] for row in rows], len({row["backend"] for row in rows})

    return read


async def test_g1_four_processes_together_never_exceed_rate_times_time_plus_burst(start, admissions):
    """Four processes call as fast as they may, one of them with a clock that does not wait."""
    per_minute, calls = 1200, 15
    plan = {"call": SEARCH, "calls": calls, "settings": {"search_per_min": per_minute}}
    processes = [await start(**plan, rush=number == 0) for number in range(4)]
    for process in processes:
        await process.hear("done")
    moments, backends = await admissions()
    burst, interval = DEFAULT.paces["messages.search"].burst, 60 / per_minute
    assert len(moments) == 4 * calls
    assert backends == 4
    for first in range(len(moments)):
        for last in range(first, len(moments)):
            assert last - first + 1 <= (moments[last] - moments[first]) / interval + burst + 1e-3


async def test_g3_a_block_met_by_one_process_stops_the_others_before_their_next_call(
    start, sql, standing_fleet_time, advance_fleet_time
):
    blocked = await start(call=HISTORY, calls=1, answers=["FLOOD_WAIT_3600"], patience=1)
    await blocked.hear("started")
    assert 3601 <= await blocked.hear("not_before") <= 3602
    other = await start(call=HISTORY, calls=1, patience=1)
    assert 3601 <= await other.hear("not_before") <= 3602
    free = await start(call=SEARCH, calls=1, patience=1)
    await free.hear("started")
    await advance_fleet_time(3602)
    later = await start(call=HISTORY, calls=1, patience=1)
    await later.hear("started")


async def test_g5_a_call_that_waits_in_another_process_does_not_start_while_blocked(
    start, sql, advance_fleet_time
):
    """It waits for its turn when the block comes up; time moves past its turn, then past the block."""
    waiting = await start(call=HISTORY, calls=4, rush=True, settings={"get_history_per_min": 1})
    await waiting.hear("started")
    await waiting.hear("started")  # from here on it waits for its pace, of a call a minute
    await sql.execute(_FLOODED.format(method="messages.getHistory", seconds=7200))
    await advance_fleet_time(3600)
    asked = await sql.fetchval("SELECT sum(call_count) FROM rate_limits")
    probe = await start(call=HISTORY | {"chat": 7}, calls=1, patience=1)
    assert await probe.hear("not_before") > 3000
    assert await sql.fetchval("SELECT sum(call_count) FROM rate_limits") == asked == 2
    await advance_fleet_time(3602)
    await waiting.hear("started")


async def test_g12_a_process_whose_clock_is_wrong_neither_calls_early_nor_makes_others_wait(start, sql):
    await sql.execute(_FLOODED.format(method="messages.getHistory", seconds=1))
    until = await sql.fetchval("SELECT blocked_until FROM flood_wait_state")
    wrong = await start(call=HISTORY, calls=1, rush=True)
    right = await start(call=HISTORY | {"chat": 6}, calls=1)
    for process in (wrong, right):
        await process.hear("started")
        await process.hear("done")
    first = await sql.fetchval("SELECT min(last_call_at) FROM rate_limits")
    assert first >= until


async def test_g13_a_restart_remembers_every_block_even_after_a_kill(
    start, sql, standing_fleet_time, advance_fleet_time
):
    owner = await start(call=HISTORY, calls=2, answers=["FLOOD_WAIT_420"])
    await owner.hear("started")
    await until(lambda: sql.fetchval("SELECT count(*) > 0 FROM flood_wait_state"))
    await owner.kill()
    heir = await start(call=HISTORY, calls=1, patience=1)
    assert 421 <= await heir.hear("not_before") <= 422
    assert await sql.fetchval("SELECT call_count FROM rate_limits") == 1
    await advance_fleet_time(422)
    heir = await start(call=HISTORY, calls=1, patience=1)
    await heir.hear("started")


async def test_g10_cleaning_up_in_one_process_erases_no_block_that_another_renews(start, sql, database_url):
    """Many clean-ups and renewals at once; after each renewal the block stands."""
    stores = [GovernorStore(Database(database_url), retention_days=7) for _ in range(2)]
    governor = Governor(stores[1])
    call = Call(1, "messages.getHistory", chat=5)

    async def clean():
        for _ in range(40):
            await stores[0].cleanup()

    async def renew():
        for _ in range(40):
            await sql.execute(
                "UPDATE flood_wait_state SET blocked_until = fleet_now()"
            )  # over by the next look
            await governor.flooded(call, Flood(FloodKind.FLOOD, 60))
            assert len(await stores[1].active_blocks()) == 1

    await asyncio.gather(clean(), renew())
    for store in stores:
        await store._database.close()


async def test_g9_no_connection_is_held_while_a_call_waits(sql, database_url):
    database = Database(database_url, pool_size=1)
    governor = Governor(GovernorStore(database, retention_days=7))
    call = Call(1, "messages.getHistory", chat=5)
    await governor.flooded(call, Flood(FloodKind.FLOOD, 600))

    async def work():
        raise AssertionError("called while blocked")

    waiting = [asyncio.create_task(governor.call(call, work, patience=1e6)) for _ in range(5)]

    async def all_wait():
        turnstile = governor._turnstiles.get((1, call.method))
        return (
            turnstile is not None and len(turnstile) == 5 and turnstile._ripe_at > 0 and not turnstile._asking
        )

    await until(all_wait)
    assert database._engine.pool.checkedout() == 0
    busy = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND state LIKE '%transaction%'"
    assert await sql.fetchval(busy) == 0
    for task in waiting:
        task.cancel()
    await asyncio.gather(*waiting, return_exceptions=True)
    await database.close()


async def test_g14_a_block_is_announced_to_every_process(sql, database_url, database):
    store = GovernorStore(database, retention_days=7)
    clock = SystemClock()
    governor = Governor(store, clock=clock)
    blocks = BlockCache(store, clock, trusted_for=3600)
    keeper = Keeper(governor, blocks, clock, interval=3600)
    heard = asyncio.Event()

    def notify(_):
        keeper.notify()
        heard.set()

    tasks = [
        asyncio.create_task(notifications.listen(database_url, notifications.FLOW, notify, clock)),
        asyncio.create_task(keeper.run()),
    ]
    await asyncio.wait_for(heard.wait(), HANG_SECONDS)
    await asyncio.wait_for(blocks.until_free(1, "upload.getFile"), HANG_SECONDS)
    heard.clear()
    await sql.execute(_FLOODED.format(method="upload.getFile", seconds=60))
    await asyncio.wait_for(heard.wait(), HANG_SECONDS)

    async def blocked():
        return not blocks.free(1, "upload.getFile")

    await until(blocked)
    assert blocks._until[1, "upload.getFile"] > clock.monotonic() + 50
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


async def test_g16_a_database_that_refuses_connections_is_a_retryable_failure():
    store = GovernorStore(Database("postgresql://nobody@127.0.0.1:1/nothing"), retention_days=7)
    call = Call(1, "messages.search")
    with pytest.raises(RetryableError):
        await store.admit(call, DEFAULT.buckets(call), DEFAULT.adaptation)
    with pytest.raises(RetryableError):
        await store.active_blocks()


async def test_g16_a_lost_listening_connection_is_made_anew_and_told(sql, database_url):
    class Quick(SystemClock):
        async def sleep(self, seconds):
            await asyncio.sleep(min(seconds, 0.01))

    heard = asyncio.Event()
    listening = asyncio.create_task(
        notifications.listen(database_url, notifications.FLOW, lambda _: heard.set(), Quick())
    )
    await asyncio.wait_for(heard.wait(), HANG_SECONDS)
    heard.clear()
    await sql.execute(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'archive-fleet listen'"
        " AND datname = current_database()"
    )
    await asyncio.wait_for(heard.wait(), HANG_SECONDS)
    heard.clear()
    await sql.execute("SELECT pg_notify('fleet_flow', 'block')")
    await asyncio.wait_for(heard.wait(), HANG_SECONDS)
    listening.cancel()
    await asyncio.gather(listening, return_exceptions=True)
