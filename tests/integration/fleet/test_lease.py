"""Owning an account."""

import asyncio
import contextlib
import time
import uuid
from dataclasses import replace
from datetime import timedelta

import asyncpg
import pytest
from breakable_line import line_to
from hang_guard import HANG_SECONDS, until
from manual_clock import ManualClock, settle

from worker.clock import SystemClock
from worker.config.settings import LeaseSettings
from worker.domain.content import lock_key
from worker.errors import LeaseLostError, RetryableError
from worker.fleet.lease import lease_account, patience_of, silence_of
from worker.store import workers
from worker.store.account_locks import AccountLocks
from worker.store.database import Database
from worker.store.leases import look
from worker.store.locks import LockSession, account_is_locked

_KILL_LOCK_HOLDERS = (
    "SELECT pg_terminate_backend(pid) FROM pg_locks WHERE locktype = 'advisory' AND pid <> pg_backend_pid()"
    " AND database = (SELECT oid FROM pg_database WHERE datname = current_database())"
)
_ACCOUNT_1_IS_LOCKED = f"SELECT {account_is_locked('1')}"
# What a busy machine is late with ends no lease: only a test's own clock does. The signs of life of a lease whose
# heart beats come by the machine's time, though: nobody may count on one between two looks on another clock.
BEATING = LeaseSettings(lease_secs=2 * HANG_SECONDS, heartbeat_secs=0.05)
STILL = LeaseSettings(lease_secs=2 * HANG_SECONDS, heartbeat_secs=HANG_SECONDS)
HASH = bytes(range(32))


@pytest.fixture
async def raw(database_url):
    connection = await asyncpg.connect(database_url)
    await connection.execute("INSERT INTO accounts (phone, state) VALUES ('+1', 'ready')")
    yield connection
    await connection.close()


@pytest.fixture
async def over_a_line(database_url):
    async with line_to(database_url) as (line, address):
        database = Database(address)
        yield line, database
        await line.mend()
        await database.close()


async def _worker(database) -> uuid.UUID:
    worker_id = uuid.uuid4()
    await workers.register(database, worker_id, host="h", pid=1, version="0", address=None)
    return worker_id


async def _until(condition) -> None:
    async with asyncio.timeout(HANG_SECONDS):
        while not condition():
            await asyncio.to_thread(time.sleep, 0.01)


async def test_one_worker_owns_an_account_and_leaves_it_clean(database, raw):
    first, second = await _worker(database), await _worker(database)
    async with lease_account(database, SystemClock(), BEATING, 1, first) as lease:
        lease.require()
        async with lease_account(database, SystemClock(), BEATING, 1, second) as other:
            assert other is None
        assert await raw.fetchval("SELECT worker_id FROM accounts") == first
    assert tuple(await raw.fetchrow("SELECT worker_id, lease_until, lease_epoch FROM accounts")) == (
        None,
        None,
        1,
    )


@pytest.mark.parametrize(("silent", "is_named"), [(1.0, False), (HANG_SECONDS, True)])
async def test_an_account_whose_connection_may_stand_at_telegram_is_left_as_after_a_crash(
    database, raw, silent, is_named
):
    """Telegram has not heard of an end that the network swallowed."""
    owner = await _worker(database)
    async with lease_account(database, ManualClock(), STILL, 1, owner) as lease:
        lease.tether.parted(silent)
    assert await raw.fetchval("SELECT worker_id FROM accounts") == (owner if is_named else None)


async def test_an_account_whose_dead_connection_telegram_has_dropped_is_left_clean(database, raw):
    clock = ManualClock()
    async with lease_account(database, clock, STILL, 1, await _worker(database)) as lease:
        lease.tether.parted(HANG_SECONDS)
        await clock.advance(STILL.disconnect_secs)
    assert await raw.fetchval("SELECT worker_id FROM accounts") is None


async def test_nothing_is_sent_under_a_lease_that_has_ended(database, raw):
    """A connection that the library is still making then is told so, however long its owner would be trusted."""
    async with lease_account(database, SystemClock(), STILL, 1, await _worker(database)) as lease:
        lease.require_time()
    for ask in (lease.require_time, lease.require):
        with pytest.raises(LeaseLostError, match="has ended"):
            ask()


async def test_a_lost_connection_is_a_doubt_that_regained_locks_end(database, raw):
    async with lease_account(database, SystemClock(), BEATING, 1, await _worker(database)) as lease:
        assert await lease.locks.try_content(HASH)
        doubts = []
        lost = lease.locks.lost

        async def write_something_visible() -> None:
            await lost.wait()
            with pytest.raises(RetryableError):
                lease.require()
            lease.require_time()
            doubts.append("bytes move, nothing visible is written")
            await lease.confirmed()
            lease.require()

        writing = asyncio.create_task(write_something_visible())
        await settle()
        await raw.execute(_KILL_LOCK_HOLDERS)
        async with asyncio.timeout(HANG_SECONDS):
            await writing
        assert doubts
        assert not await raw.fetchval("SELECT pg_try_advisory_lock($1::bigint)", lock_key(HASH)), (
            "the content's lock is held again too"
        )
    assert await raw.fetchval("SELECT lease_epoch FROM accounts") == 1


async def test_a_database_that_is_away_for_less_than_the_lease_ends_nothing(over_a_line, raw):
    line, database = over_a_line
    async with lease_account(database, SystemClock(), BEATING, 1, await _worker(database)) as lease:
        await line.cut()
        await _until(lambda: lease.locks.in_doubt)
        await line.mend()
        async with asyncio.timeout(HANG_SECONDS):
            await lease.confirmed()


async def test_a_lock_that_another_worker_took_meanwhile_ends_the_lease(database, raw):
    other = await _worker(database)

    async def work() -> None:
        async with lease_account(database, SystemClock(), STILL, 1, await _worker(database)):
            await raw.execute("UPDATE accounts SET worker_id = $1, lease_epoch = lease_epoch + 1", other)
            await raw.execute(_KILL_LOCK_HOLDERS)
            await asyncio.Event().wait()

    async with asyncio.timeout(HANG_SECONDS):
        with pytest.raises(LeaseLostError, match="another worker"):
            await work()
    assert await raw.fetchval("SELECT worker_id FROM accounts") == other


async def test_an_error_in_place_of_our_cancellation_leaves_none_behind(database, raw):
    async def work() -> None:
        async with lease_account(database, SystemClock(), STILL, 1, await _worker(database)):
            await raw.execute("UPDATE accounts SET lease_epoch = lease_epoch + 1")
            await raw.execute(_KILL_LOCK_HOLDERS)
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                raise ConnectionError("broken by the loss") from None

    body = asyncio.current_task()
    async with asyncio.timeout(HANG_SECONDS):
        with pytest.raises(ConnectionError):
            await work()
    assert body.cancelling() == 0


async def test_work_ends_with_its_lease_even_if_its_connections_cannot_be_cut(database, raw):
    def break_down() -> None:
        raise ConnectionError("no socket to cut")

    async def work() -> None:
        async with lease_account(database, SystemClock(), STILL, 1, await _worker(database)) as lease:
            lease.on_lost = break_down
            await raw.execute("UPDATE accounts SET lease_epoch = lease_epoch + 1")
            await raw.execute(_KILL_LOCK_HOLDERS)
            await asyncio.Event().wait()

    async with asyncio.timeout(HANG_SECONDS) as limit:
        with pytest.raises(LeaseLostError):
            await work()
    assert not limit.expired()


async def test_a_silent_database_cuts_the_connections_when_the_trusted_time_is_over(over_a_line, raw):
    line, database = over_a_line
    owner, clock, cut = await _worker(database), ManualClock(), asyncio.Event()

    async def work() -> None:
        async with lease_account(database, clock, BEATING, 1, owner) as lease:
            lease.on_lost = cut.set
            line.silence()
            await clock.advance(BEATING.lease_secs - 0.1)
            lease.require()
            await clock.advance(0.2)

    working = asyncio.create_task(work())
    async with asyncio.timeout(HANG_SECONDS):
        await cut.wait()
        # It answers again: whatever the end of the lease asked it for would come about.
        await line.mend()
        with pytest.raises(LeaseLostError, match="no heartbeat"):
            await working
    assert await raw.fetchval("SELECT worker_id FROM accounts") == owner, "nobody waits for it at the end"


async def test_a_lock_asked_for_in_doubt_is_answered_after_it(over_a_line, raw):
    line, database = over_a_line
    async with lease_account(database, SystemClock(), BEATING, 1, await _worker(database)) as lease:
        await line.cut()
        await _until(lambda: lease.locks.in_doubt)
        asking = asyncio.create_task(lease.locks.try_content(HASH))
        await settle()
        assert not asking.done()
        await line.mend()
        assert await asking
        assert not await lease.locks.try_content(HASH), "re-entrant in PostgreSQL, but not for us"


async def test_a_lock_let_go_of_in_doubt_is_not_held_after_it(over_a_line, raw):
    line, database = over_a_line
    async with lease_account(database, SystemClock(), BEATING, 1, await _worker(database)) as lease:
        assert await lease.locks.try_content(HASH)
        await line.cut()
        await _until(lambda: lease.locks.in_doubt)
        await lease.locks.release_content(HASH)
        await line.mend()
        await lease.confirmed()
        assert await raw.fetchval("SELECT pg_try_advisory_lock($1::bigint)", lock_key(HASH))


async def _silent_owner(database, raw, *, until: float, patience: float | None = 20) -> uuid.UUID:
    """Account 1 has an owner that has said nothing for a while; by the server's clock it is sure for so long."""
    worker_id = await _worker(database)
    await raw.execute(
        "UPDATE accounts SET worker_id = $1, lease_seconds = $3, lease_until = fleet_now() + $2 * interval '1 second'"
        " WHERE id = 1",
        *(worker_id, until, patience),
    )
    return worker_id


class _Successor:
    """Asks for account 1 on a clock of its own, and notes whether it got it."""

    def __init__(self, database, worker_id, *, settings=STILL):
        self.clock = ManualClock()
        self.told = []
        self.entered = None
        self.task = asyncio.create_task(self._work(database, worker_id, settings))

    async def _work(self, database, worker_id, settings):
        async with lease_account(database, self.clock, settings, 1, worker_id, self.told.append) as lease:
            self.entered = lease is not None

    async def wait(self):
        """Until it waits for its clock."""
        await _until(lambda: self.clock.sleeping or self.task.done())
        assert not self.task.done(), self.entered

    async def after(self, seconds: float):
        """Let so much time pass; whether it was let in, None as long as it does not know."""
        while seconds > 0:
            await self.clock.advance(min(seconds, 1.0))
            seconds -= 1.0
            await _until(lambda: self.clock.sleeping or self.task.done())
        return self.entered


@pytest.mark.usefixtures("standing_fleet_time")
async def test_an_owner_that_sleeps_on_after_its_lease_is_shut_out(database, database_url, raw):
    asleep = await LockSession.open(database_url, answer_within=HANG_SECONDS)
    assert await asleep.try_account(1)
    await _silent_owner(database, raw, until=20)
    async with lease_account(database, SystemClock(), BEATING, 1, await _worker(database)) as lease:
        assert lease is None, "it may have given a sign of life just now"
    await _silent_owner(database, raw, until=-1)
    successor = _Successor(database, await _worker(database))
    await successor.wait()
    assert await successor.after(19) is None
    assert not asleep.lost.is_set()
    assert await successor.after(2)
    async with asyncio.timeout(HANG_SECONDS):
        await asleep.lost.wait()
    await asleep.close()


@pytest.mark.parametrize("until", [20, -3600, 3600], ids=["in time", "a step ahead", "a step back"])
async def test_a_new_owner_waits_as_long_as_the_last_one_may_be_connected_whatever_the_clock_says(
    database, raw, until
):
    await _silent_owner(database, raw, until=until)
    successor = _Successor(database, await _worker(database))
    await successor.wait()
    assert await successor.after(19) is None
    assert not await raw.fetchval(_ACCOUNT_1_IS_LOCKED), "whoever waits holds nothing"
    assert await successor.after(2)
    await successor.task
    (line,) = successor.told
    assert "account 1: its last worker ended without a word; waiting 20 s at most" in line


async def test_a_new_owner_waits_its_own_time_for_one_that_left_none(database, raw):
    await _silent_owner(database, raw, until=-1, patience=None)
    successor = _Successor(database, await _worker(database))
    await successor.wait()
    assert await successor.after(patience_of(STILL) - 1) is None
    assert await successor.after(2)
    await successor.task


async def test_what_was_seen_of_a_silent_owner_before_is_not_waited_for_again(database, raw):
    await _silent_owner(database, raw, until=20)
    clock = ManualClock()
    silence = silence_of(database, clock, STILL)
    await silence.listen()
    await clock.advance(21)
    async with lease_account(database, clock, STILL, 1, await _worker(database), silence=silence) as lease:
        assert lease is not None
    assert clock.sleeping <= 2, "nothing but the lease's own keepers slept"


async def test_a_worker_waits_for_nobody_where_it_was_the_last_owner_itself(database, raw):
    me = await _silent_owner(database, raw, until=20)
    async with lease_account(database, SystemClock(), BEATING, 1, me) as lease:
        assert lease is not None


@pytest.mark.parametrize("step", [3600, -3600])
async def test_a_clock_that_steps_gives_an_account_no_second_owner(database, raw, advance_fleet_time, step):
    async with lease_account(database, SystemClock(), STILL, 1, await _worker(database)) as lease:
        await advance_fleet_time(step)
        successor = _Successor(database, await _worker(database), settings=BEATING)
        await successor.wait()
        assert await successor.after(10) is None
        lease.require()
        assert await lease.locks.renew()
        async with asyncio.timeout(HANG_SECONDS):
            assert await successor.after(1) is False, "a sign of life is an answer"
        lease.require()
    assert await raw.fetchval("SELECT lease_epoch FROM accounts") == 1


@pytest.mark.parametrize("step", [0, 3600, -3600])
async def test_a_server_that_forgets_all_locks_for_a_moment_leaves_the_account_with_its_owner(
    over_a_line, database, raw, advance_fleet_time, step
):
    line, first = over_a_line

    async def is_forgotten() -> bool:
        return not await raw.fetchval(_ACCOUNT_1_IS_LOCKED)

    async with lease_account(first, SystemClock(), BEATING, 1, await _worker(database)) as lease:
        await line.cut()
        await _until(lambda: lease.locks.in_doubt)
        await until(is_forgotten)
        await advance_fleet_time(step)
        successor = _Successor(database, await _worker(database), settings=BEATING)
        await successor.wait()
        assert await successor.after(1) is None
        await line.mend()
        async with asyncio.timeout(HANG_SECONDS):
            await lease.confirmed()
            assert await successor.after(1) is False
        lease.require()
    assert await raw.fetchval("SELECT lease_epoch FROM accounts") == 1


async def test_another_server_has_to_be_watched_from_the_beginning(database, raw):
    """A standby may lack the last heartbeats: what stands there may look older than it is."""
    await _silent_owner(database, raw, until=20)
    before = await look(database, 1, patience=90)
    another = replace(before.mark, server=before.mark.server + timedelta(seconds=1))
    assert not replace(before, mark=another, marks={1: another}).has_moved_since(before), "no sign of life"
    locks = await AccountLocks.open(database.address, 1, answer_within=HANG_SECONDS)
    try:
        assert await locks.take(before)
        assert await locks.begin(replace(before, mark=another), await _worker(database), 20) is None
        assert await locks.begin(before, await _worker(database), 20) is not None
    finally:
        await locks.close()


@pytest.mark.usefixtures("standing_fleet_time")
async def test_the_row_says_when_the_connections_of_a_silent_owner_are_down(database, raw):
    query = "SELECT extract(epoch FROM lease_until - fleet_now())::float8 FROM accounts"
    async with lease_account(database, SystemClock(), STILL, 1, await _worker(database)):
        left = await raw.fetchval(query)
    # Trusted for so long; then Telegram hangs up within half of that.
    assert left == STILL.lease_secs * 1.5


async def test_trust_ends_with_the_time_that_was_counted_from_the_last_heartbeat(database, raw):
    clock = ManualClock()
    trusted = []

    async def work() -> None:
        async with lease_account(database, clock, STILL, 1, await _worker(database)) as lease:
            lease.on_lost = lambda: trusted.append("cut")
            await clock.advance(STILL.lease_secs - 0.1)
            lease.require()
            trusted.append("trusted")
            await clock.advance(0.2)

    with pytest.raises(LeaseLostError):
        await work()
    assert trusted == ["trusted", "cut"]


async def test_cancelling_the_work_from_outside_stays_a_cancellation(database, raw):
    started = asyncio.Event()

    async def work() -> None:
        async with lease_account(database, SystemClock(), BEATING, 1, await _worker(database)):
            started.set()
            await asyncio.Event().wait()

    task = asyncio.create_task(work())
    await started.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert await raw.fetchval("SELECT lease_until FROM accounts") is None


@contextlib.asynccontextmanager
async def _being_taken_over(database, raw):
    """Account 1, whose owner was killed, beside the account of whoever takes it over: only that one is alive."""
    await raw.execute("INSERT INTO accounts (phone, state) VALUES ('+2', 'ready')")
    async with lease_account(database, SystemClock(), STILL, 2, await _worker(database)) as taker:
        assert await taker.locks.try_account(1)
        await _silent_owner(database, raw, until=-1)
        lost = taker.locks.lost
        yield taker
        assert await taker.locks.renew()
        assert not lost.is_set(), "its session was ended, and it regained its locks"
        await taker.locks.release_account(1)


async def test_an_account_that_is_being_taken_over_is_left_to_whoever_does_it(database, raw):
    async with _being_taken_over(database, raw) as taker:
        successor = _Successor(database, await _worker(database), settings=BEATING)
        await successor.wait()
        assert await successor.after(30) is None, "by its own row alone the lock is a dead one's"
        assert await taker.locks.renew()
        assert await successor.after(1) is False, "a sign of life is an answer"


async def test_a_sign_of_life_after_the_last_look_is_one_too(database, raw):
    async with _being_taken_over(database, raw) as taker:
        seen = await look(database, 1, patience=20)
        assert await taker.locks.renew()
        locks = await AccountLocks.open(database.address, 1, answer_within=HANG_SECONDS)
        assert not await locks.take(seen)
        await locks.close()
