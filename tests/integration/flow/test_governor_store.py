"""The governor on PostgreSQL: the same rules as in memory, for any number of processes."""

import asyncio

import asyncpg
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from worker.domain.calls import (
    Activity,
    Adaptation,
    Buckets,
    Call,
    Flood,
    FloodKind,
    FloodReport,
    Pace,
    PartCount,
)
from worker.flow.flood import LONGEST
from worker.flow.governor import Governor
from worker.flow.limits import DEFAULT
from worker.flow.pacing import PaceState, charge, wait, widen
from worker.store.governor_store import GovernorStore

HISTORY = Call(1, "messages.getHistory", chat=5)
SEARCH = Call(1, "messages.search")


@pytest.fixture
async def sql(database_url):
    connection = await asyncpg.connect(database_url)
    await connection.execute("INSERT INTO accounts (phone) VALUES ('+1'), ('+2')")
    yield connection
    await connection.close()


@pytest.fixture
async def frozen(sql):
    """A clock of the database that stands where the test puts it."""

    async def at(seconds):
        await sql.execute(
            "CREATE OR REPLACE FUNCTION fleet_now() RETURNS timestamptz LANGUAGE sql STABLE PARALLEL SAFE AS "
            f"$$ SELECT timestamptz '2030-01-01' + interval '{seconds:.6f} seconds' $$"
        )

    await at(0)
    return at


@pytest.fixture
def store(database, sql):
    return GovernorStore(database, retention_days=7)


def report(call, seconds, *, kind=FloodKind.FLOOD, hold=None):
    return FloodReport(
        call=call,
        flood=Flood(kind, seconds),
        hold=seconds + 1.5 if hold is None else hold,
        bucket=DEFAULT.buckets(call).name,
        duration=0.25,
        escalation=DEFAULT.escalation,
        adaptation=DEFAULT.adaptation,
    )


async def ask(store, call):
    return await store.admit(call, DEFAULT.buckets(call), DEFAULT.adaptation)


async def test_g2_a_call_is_charged_and_counted_in_its_window(store, sql, frozen):
    assert (await ask(store, HISTORY)).granted
    await frozen(59)
    assert (await ask(store, HISTORY)).granted
    await frozen(61)
    assert (await ask(store, HISTORY)).granted
    rows = await sql.fetch("SELECT call_count FROM rate_limits ORDER BY window_start")
    assert [row[0] for row in rows] == [2, 1]


async def test_g2_a_chats_own_pace_refuses_without_charging_the_method(store, sql, frozen):
    buckets = Buckets("messages.getHistory", Pace(600, burst=50), Pace(6, burst=1))
    assert (await store.admit(HISTORY, buckets, DEFAULT.adaptation)).granted
    before = await sql.fetchval("SELECT tat FROM call_paces WHERE chat = 0")
    refused = await store.admit(HISTORY, buckets, DEFAULT.adaptation)
    assert (refused.wait, refused.reason, refused.of_chat) == (10, "chat pace", True)
    assert await sql.fetchval("SELECT tat FROM call_paces WHERE chat = 0") == before
    other = Call(1, HISTORY.method, chat=6)
    assert (await store.admit(other, buckets, DEFAULT.adaptation)).granted


@settings(
    max_examples=15,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
    derandomize=True,
)
@given(
    steps=st.lists(st.tuples(st.floats(0, 20), st.booleans()), min_size=1, max_size=25),
    burst=st.integers(1, 5),
    per_minute=st.sampled_from([5, 30, 120]),
)
def test_g1_g11_the_database_does_the_same_sums_as_the_model(database_url, steps, burst, per_minute):
    """Admissions, waits and widenings agree to the microsecond, whatever comes in whatever order."""
    asyncio.run(_compare(database_url, steps, Pace(per_minute, burst)))


async def _compare(database_url, steps, pace):
    connection = await asyncpg.connect(database_url)
    try:
        await connection.execute("TRUNCATE accounts RESTART IDENTITY CASCADE")
        await _run_model(connection, steps, pace, Adaptation(half_life=60))
    finally:
        await connection.close()


async def _run_model(connection, steps, pace, how):
    await connection.execute("INSERT INTO accounts (phone) VALUES ('+1')")
    state, now = PaceState(), 0.0
    for gap, floods in steps:
        now = round(now + gap, 6)
        await connection.execute(
            "CREATE OR REPLACE FUNCTION fleet_now() RETURNS timestamptz LANGUAGE sql STABLE PARALLEL SAFE AS "
            f"$$ SELECT timestamptz '2030-01-01' + interval '{now:.6f} seconds' $$"
        )
        if floods:
            await connection.execute(
                "SELECT governor_flooded(1, 'elsewhere', 0, 'FLOOD_WAIT', 1, 0, 'm', 0, '', 99, 1, 0, $1, $2, $3)",
                *(how.widen, how.widest, how.half_life),
            )
            await connection.execute("DELETE FROM flood_wait_state")
            state = widen(state, now, how)
        waited = await connection.fetchval(
            "SELECT wait FROM governor_admit(1, 'm', 0, 'm', $1, $2, NULL, NULL, $3, $4)",
            *(pace.interval, pace.burst, how.slow_from, how.half_life),
        )
        expected = wait(pace, state, now, how)
        assert waited == pytest.approx(expected, abs=1e-5)
        if waited == 0:
            state = charge(pace, state, now, how)


async def test_g3_a_later_shorter_wait_does_not_shorten_the_block(store, frozen):
    assert (await store.record_flood(report(HISTORY, 420))).seconds == pytest.approx(421.5)
    await frozen(10)
    assert (await store.record_flood(report(HISTORY, 5))).seconds == pytest.approx(411.5)
    refused = await ask(store, HISTORY)
    assert refused.reason == "flood"
    assert refused.wait == pytest.approx(411.5)
    (block,) = await store.active_blocks()
    assert (block.wait, block.seconds_left) == (420, pytest.approx(411.5))


async def test_g3_a_longer_wait_lengthens_the_block(store, frozen):
    await store.record_flood(report(HISTORY, 5))
    assert (await store.record_flood(report(HISTORY, 420))).seconds == pytest.approx(421.5)


async def test_g4_a_block_stops_no_other_account_and_no_other_method(store, frozen):
    await store.record_flood(report(HISTORY, 420))
    assert (await ask(store, SEARCH)).granted
    assert (await ask(store, Call(2, HISTORY.method, chat=5))).granted
    assert not (await ask(store, Call(1, HISTORY.method, chat=6))).granted


async def test_g4_slow_mode_stops_only_that_chat(store, frozen):
    call = Call(1, "messages.sendMessage", chat=5)
    await store.record_flood(report(call, 30, kind=FloodKind.SLOWMODE))
    refused = await ask(store, call)
    assert (refused.reason, refused.of_chat) == ("slow mode", True)
    assert (await ask(store, Call(1, "messages.sendMessage", chat=6))).granted
    assert (await ask(store, Call(1, "messages.sendMessage"))).granted


async def test_g8_the_third_flood_within_an_hour_escalates_and_is_kept_for_people_to_see(store, sql, frozen):
    verdicts = []
    for minute in (0, 10, 20):
        await frozen(minute * 60)
        verdicts.append(await store.record_flood(report(HISTORY, 10)))
    assert [verdict.escalated for verdict in verdicts] == [False, False, True]
    assert [round(verdict.seconds, 1) for verdict in verdicts] == [11.5, 11.5, 311.5]
    row = await sql.fetchrow("SELECT account_id, method, floods, extra_seconds FROM escalations")
    assert tuple(row) == (1, "messages.getHistory", 3, 300)


async def test_g8_floods_more_than_an_hour_apart_do_not_escalate(store, frozen):
    for minute in (0, 40, 80, 120, 160):
        await frozen(minute * 60)
        assert not (await store.record_flood(report(HISTORY, 10))).escalated


async def test_g8_refusals_of_calls_that_were_in_flight_together_are_one_flood(store, sql, frozen):
    for _ in range(8):
        assert not (await store.record_flood(report(HISTORY, 10))).escalated
    assert await sql.fetchval("SELECT widened FROM call_paces WHERE chat = 0") == DEFAULT.adaptation.widen
    await frozen(600)
    assert not (await store.record_flood(report(HISTORY, 10))).escalated


@pytest.mark.parametrize("kind", [FloodKind.PREMIUM, FloodKind.SLOWMODE])
async def test_g8_premium_waits_and_slow_mode_never_escalate_and_widen_nothing(store, sql, frozen, kind):
    for minute in range(6):
        await frozen(minute * 60)
        assert not (await store.record_flood(report(HISTORY, 5, kind=kind))).escalated
    assert await sql.fetchval("SELECT max(widened) FROM call_paces") == 1
    blocks = await sql.fetch("SELECT chat FROM flood_wait_state")
    assert [block["chat"] for block in blocks] == ([] if kind is FloodKind.PREMIUM else [5])


async def test_g10_cleaning_up_removes_what_is_old_and_no_block_in_force(store, sql, frozen):
    await ask(store, SEARCH)
    await store.record_flood(report(SEARCH, 10))
    await store.record_activity([Activity(1, "messages.search", True, 0.1)], [])
    await frozen(3 * 3600)
    await ask(store, SEARCH)
    await store.record_flood(report(HISTORY, 86400 * 30))
    cleaned = await store.cleanup()
    assert (cleaned.windows, cleaned.blocks, cleaned.activity) == (1, 1, 0)
    await frozen(8 * 86400)
    assert (await store.cleanup()).activity == 3
    (block,) = await store.active_blocks()
    assert block.method == "messages.getHistory"
    assert await sql.fetchval("SELECT count(*) FROM call_paces") == 0


async def test_g10_a_block_renewed_while_the_clean_up_waits_for_its_row_stays(
    store, sql, frozen, database_url
):
    await store.record_flood(report(HISTORY, 10))
    await frozen(20)
    renewing = await asyncpg.connect(database_url)
    try:
        transaction = renewing.transaction()
        await transaction.start()
        await renewing.execute("UPDATE flood_wait_state SET blocked_until = fleet_now() + interval '1 hour'")
        cleaning = asyncio.create_task(store.cleanup())
        while not await sql.fetchval("SELECT count(*) FROM pg_locks WHERE NOT granted"):
            assert not cleaning.done()
        await transaction.commit()
        assert (await cleaning).blocks == 0
    finally:
        await renewing.close()
    (block,) = await store.active_blocks()
    assert block.seconds_left == pytest.approx(3600)


async def test_g11_a_flood_widens_the_pace_and_the_widening_fades(store, sql, frozen):
    async def gap():
        tat = [await sql.fetchval("SELECT tat FROM call_paces WHERE method = 'messages.search'")]
        assert (await ask(store, SEARCH)).granted
        tat.append(await sql.fetchval("SELECT tat FROM call_paces WHERE method = 'messages.search'"))
        return (tat[1] - max(tat[0], await sql.fetchval("SELECT fleet_now()"))).total_seconds()

    await ask(store, SEARCH)
    await store.record_flood(report(SEARCH, 1))
    steps = []
    for moment in (100, 1000, 2000, 20000):
        await frozen(moment)
        steps.append(await gap())
    assert steps == sorted(steps, reverse=True)
    assert 5 < steps[0] < 6
    assert steps[3] == pytest.approx(3, abs=0.001)


async def test_g15_a_batch_of_lines_and_counts_is_written_in_one_statement(store, sql, frozen):
    lines = [
        Activity(1, "upload.getFile", True, 12.5, context="set 7", calls=1000),
        Activity(1, "upload.getFile", False, 0.1, error="TIMEOUT"),
        Activity(99, "upload.getFile", True, 0.1),  # an account that is gone spoils nothing
    ]
    for _ in range(2):
        await store.record_activity(lines, [PartCount(1, "upload.getFile", 500), PartCount(2, "x", 1)])
    rows = await sql.fetch(
        "SELECT success, error_code, context, calls, request_duration_ms FROM api_activity"
    )
    assert {tuple(row) for row in rows} == {
        (True, None, "set 7", 1000, 12500),
        (False, "TIMEOUT", None, 1, 100),
    }
    assert await sql.fetchval("SELECT call_count FROM rate_limits WHERE method = 'upload.getFile'") == 1000


async def test_g12_the_record_and_every_decision_use_the_databases_time(store, sql, frozen):
    """The database stands in 2030; nothing that this process believes about time gets in."""
    await store.record_flood(report(HISTORY, 60))
    await ask(store, SEARCH)
    await store.record_activity([Activity(1, "m", True, 0.0)], [PartCount(1, "m", 1)])
    for table, column in [
        ("flood_wait_state", "created_at"),
        ("api_activity", "at"),
        ("rate_limits", "last_call_at"),
        ("call_paces", "last_at"),
    ]:
        years = await sql.fetch(f"SELECT DISTINCT extract(year FROM {column})::int FROM {table}")
        assert [row[0] for row in years] == [2030], table


async def test_a_clock_that_steps_back_prolongs_no_pace(store, sql, frozen):
    buckets = Buckets("messages.getHistory", Pace(600, burst=50), Pace(6, burst=1))
    assert (await store.admit(HISTORY, buckets, DEFAULT.adaptation)).granted
    await frozen(-120)
    refused = await store.admit(HISTORY, buckets, DEFAULT.adaptation)
    assert (refused.wait, refused.reason) == (10, "chat pace"), "as if no time had passed, but no more"
    await frozen(-120 + 10)
    assert (await store.admit(HISTORY, buckets, DEFAULT.adaptation)).granted


async def test_a_clock_that_steps_back_prolongs_no_flood(store, sql, frozen):
    await store.record_flood(report(HISTORY, 60))
    await frozen(-3600)
    assert (await ask(store, HISTORY)).wait == pytest.approx(61.5)
    await frozen(-3600 + 60)
    assert (await ask(store, HISTORY)).wait == pytest.approx(1.5)
    (block,) = await store.active_blocks()
    assert block.seconds_left == pytest.approx(1.5)
    await frozen(-3600 + 62)
    assert (await ask(store, HISTORY)).granted


async def test_a_flood_of_an_account_that_was_removed_holds_up_no_other(store, sql):
    """It waits to be recorded before any further call of the process is allowed."""
    governor = Governor(store)
    await sql.execute("DELETE FROM accounts WHERE id = 1")
    assert (await governor.flooded(HISTORY, Flood(FloodKind.FLOOD, 60))).seconds >= 61
    other = Call(2, HISTORY.method)

    async def work():
        return "done"

    assert await governor.call(other, work) == "done"


async def test_the_longest_wait_that_is_understood_can_be_kept(store, frozen):
    await store.record_flood(report(HISTORY, LONGEST))
    assert (await ask(store, HISTORY)).wait > LONGEST
