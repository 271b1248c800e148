"""A try is counted before its work: what ends the process is not begun for ever."""

import asyncio
import uuid
from functools import partial
from types import SimpleNamespace

import asyncpg
import pytest
from claims import claim_next, let_go
from lost_reply import LosesOneReply
from source_rows import hold, open_source, posted

from worker.errors import CommitUnknownError, LeaseLostError, WorkerTroubleError
from worker.pipeline.fetch import Fetched, FetchedPart
from worker.pipeline.index import counted_try
from worker.pipeline.run import index_fetched
from worker.pipeline.tries import Tries
from worker.store import metadata, proofs, sets, workers
from worker.store.metadata import Attempt
from worker.store.set_aside import keep_page

# How long a busy machine takes for a test ends no wait and no claim.
pytestmark = pytest.mark.usefixtures("standing_fleet_time")
_PACKAGE = """
    INSERT INTO packages (content_hash, file_name, file_size, archive_type, dest_channel_id, dest_message_id, part_count,
        metadata_attempts)
    VALUES (sha256('one'), 'One.zip', 1, 'zip', 1, 1, 1, 1)
"""


@pytest.fixture
async def raw(database, database_url):
    source = await open_source(database, database_url)
    names = ("a.part1.rar", "a.part2.rar", "b.part1.rar", "b.part2.rar")
    async with database.transaction("test.page") as connection:
        await keep_page(connection, source, [posted(n, name) for n, name in enumerate(names, start=1)])
    connection = await asyncpg.connect(database_url)
    yield connection
    await connection.close()


async def _next(database):
    return await proofs.next_to_prove(database, 1, most=25, hold=1.0)


@pytest.fixture
async def forgetful(database_url):
    """A database whose first commit is done, and not heard of."""
    opened = LosesOneReply(database_url)
    yield opened
    await opened.close()


async def test_w3_a_proof_that_never_ended_is_tried_alone_and_counted_before_it_begins(
    database, raw, advance_fleet_time
):
    assert [one.unended for one in await _next(database)] == [1, 1]
    await advance_fleet_time(2)
    for tries in (2, 2):
        (alone,) = await _next(database)
        assert alone.unended == tries
    await advance_fleet_time(2)
    (alone,) = await _next(database)
    assert alone.unended == 3
    assert await proofs.look_again(database, alone, "flood", 0.0)
    assert await raw.fetchval("SELECT unended FROM archive_sets WHERE id = $1", alone.set_id) == 0


async def test_w3_a_proof_that_reads_many_parts_is_not_taken_for_one_that_never_ended(
    database, raw, advance_fleet_time
):
    await raw.execute("UPDATE archive_sets SET part_count = 600 WHERE name = 'a.rar'")
    assert len(await _next(database)) == 2
    for _ in range(5):
        await advance_fleet_time(2)
        assert [one.name for one in await _next(database)] == ["b.rar"]
    await advance_fleet_time(2)
    assert "a.rar" in [one.name for one in [*await _next(database), *await _next(database)]]


async def test_w3_a_set_whose_workers_all_fell_silent_is_failed_and_one_of_a_worker_that_stopped_is_not(
    database, raw, advance_fleet_time
):
    await raw.execute("UPDATE archive_sets SET state = 'ready', to_prove = false, reason = NULL")
    worker_id = uuid.uuid4()
    await workers.register(database, worker_id, host="h", pid=1, version="0", address=None)
    for _ in range(7):
        claim = await claim_next(database, 1, worker_id)
        await workers.stopped(database, worker_id)
        assert await sets.release_dead_claims(database, uuid.uuid4()) == 1
        await workers.heartbeat(database, worker_id, 0)
    assert await raw.fetchval("SELECT max(unended) FROM archive_sets") == 0
    await raw.execute("UPDATE archive_sets SET unended = 7 WHERE id = $1", claim.set_id)
    await raw.execute(
        "UPDATE archive_sets SET not_before = fleet_now() + interval '1 day' WHERE id <> $1", claim.set_id
    )
    claim = await claim_next(database, 1, worker_id)
    await advance_fleet_time(60)
    await workers.bury_dead_workers(database, 30)
    assert await sets.release_dead_claims(database, uuid.uuid4()) == 1
    state, reason = await raw.fetchrow("SELECT state, reason FROM archive_sets WHERE id = $1", claim.set_id)
    assert (state, reason) == ("failed", "8 workers ended while they worked on it")


async def test_w3_a_worker_that_lives_ends_no_set_by_a_silence_of_its_own(database, raw, advance_fleet_time):
    await raw.execute("UPDATE archive_sets SET state = 'ready', to_prove = false, reason = NULL, unended = 7")
    worker_id = uuid.uuid4()
    await workers.register(database, worker_id, host="h", pid=1, version="0", address=None)
    claim = await claim_next(database, 1, worker_id)
    await advance_fleet_time(60)
    assert await let_go(database, 1, worker_id) == 1
    row = await raw.fetchrow("SELECT state, unended FROM archive_sets WHERE id = $1", claim.set_id)
    assert tuple(row) == ("ready", 7)


async def _seconds_after_the_servers_start(raw, seconds):
    start = await raw.fetchval("SELECT pg_postmaster_start_time()")
    await raw.execute(
        "CREATE OR REPLACE FUNCTION fleet_now() RETURNS timestamptz LANGUAGE sql STABLE PARALLEL SAFE AS "
        f"$$ SELECT timestamptz '{start}' + interval '{seconds} seconds' $$"
    )


async def test_a_worker_not_heard_since_the_server_started_is_given_time_to_speak(database, raw):
    await raw.execute("UPDATE archive_sets SET state = 'ready', to_prove = false, reason = NULL, unended = 7")
    await _seconds_after_the_servers_start(raw, -60)
    lives, is_gone = uuid.uuid4(), uuid.uuid4()
    for worker_id in (lives, is_gone):
        await workers.register(database, worker_id, host="h", pid=1, version="0", address=None)
    await raw.execute("UPDATE archive_sets SET not_before = fleet_now()")
    claims = [await claim_next(database, 1, worker_id) for worker_id in (lives, is_gone)]

    await _seconds_after_the_servers_start(raw, 5)
    await workers.bury_dead_workers(database, 30)
    assert await sets.release_dead_claims(database, uuid.uuid4()) == 0
    await workers.heartbeat(database, lives, 0)

    await _seconds_after_the_servers_start(raw, 46)
    await workers.heartbeat(database, lives, 0)
    await workers.bury_dead_workers(database, 30)
    assert await sets.release_dead_claims(database, uuid.uuid4()) == 1
    rows = await raw.fetch("SELECT id, state FROM archive_sets")
    assert {row["id"]: row["state"] for row in rows} == {
        claims[0].set_id: "claimed",
        claims[1].set_id: "failed",
    }


async def test_a_clock_that_stepped_back_behind_the_servers_start_keeps_no_claim(database, raw):
    await raw.execute("UPDATE archive_sets SET state = 'ready', to_prove = false, reason = NULL")
    await _seconds_after_the_servers_start(raw, -600)
    await raw.execute("UPDATE archive_sets SET not_before = fleet_now()")
    worker_id = uuid.uuid4()
    await workers.register(database, worker_id, host="h", pid=1, version="0", address=None)
    await claim_next(database, 1, worker_id)
    await _seconds_after_the_servers_start(raw, -500)
    await workers.bury_dead_workers(database, 30)
    assert await sets.release_dead_claims(database, uuid.uuid4()) == 1


async def test_w3_a_listing_that_never_ended_is_begun_so_often_and_no_more(database, raw):
    await raw.execute(_PACKAGE)
    begun = [await metadata.begin_listing(database, Attempt(1), give_up_after=3) for _ in range(4)]
    assert begun == [True, True, False, False]
    state, reason = await raw.fetchrow("SELECT metadata, metadata_reason FROM packages")
    assert (state, reason) == ("failed", "its listing was begun 3 times and never ended")


async def test_a_listing_that_had_to_wait_is_not_counted(database, raw):
    await raw.execute(_PACKAGE)
    for _ in range(5):
        attempt = Attempt(1)
        assert await metadata.begin_listing(database, attempt, give_up_after=3)
        await metadata.uncount_listing(database, attempt)


async def test_w3_a_listing_that_a_disk_or_an_outage_ended_is_not_counted(database, raw, tmp_path):
    await raw.execute(_PACKAGE)
    deps = SimpleNamespace(database=database, tries=Tries(), trust=SimpleNamespace(is_trusted=True))
    away = FetchedPart(tmp_path / "away.zip", "One.zip", 1, b"")
    await index_fetched(deps, 1, Fetched((away,), b""))
    assert await raw.fetchval("SELECT metadata_attempts FROM packages") == 0

    deps.trust.is_trusted = False
    for _ in range(5):
        await deps.tries.settle()
        with pytest.raises(LeaseLostError):
            async with counted_try(deps, Attempt(1)) as attempt:
                assert await metadata.begin_listing(database, attempt, give_up_after=1)
                raise LeaseLostError("no heartbeat was answered in time")
    assert await raw.fetchval("SELECT metadata_attempts FROM packages") == 1, "given back before the next one"


async def test_a_listing_whose_counting_got_no_answer_is_given_back(database, raw, forgetful):
    await raw.execute(_PACKAGE)
    deps = SimpleNamespace(database=database, tries=Tries(), trust=SimpleNamespace(is_trusted=True))
    with pytest.raises(CommitUnknownError):
        async with counted_try(deps, Attempt(1)) as attempt:
            await metadata.begin_listing(forgetful, attempt, give_up_after=5)
    assert await raw.fetchval("SELECT metadata_attempts FROM packages") == 1, "that of the stub"


async def test_a_listing_that_was_not_counted_gives_back_no_other_one(database, raw):
    await raw.execute(_PACKAGE)
    deps = SimpleNamespace(database=database, tries=Tries(), trust=SimpleNamespace(is_trusted=True))
    with pytest.raises(WorkerTroubleError):
        async with counted_try(deps, Attempt(1)):
            raise WorkerTroubleError("PostgreSQL did not do it")
    assert await raw.fetchval("SELECT metadata_attempts FROM packages") == 1


@pytest.mark.parametrize("is_of_stub", [True, False])
async def test_a_listing_is_given_back_once_whoever_lists_it_meanwhile(
    database, raw, forgetful, advance_fleet_time, is_of_stub
):
    await raw.execute(_PACKAGE)
    attempt = Attempt(1, is_counted=is_of_stub)
    if not is_of_stub:
        await advance_fleet_time(1)
        await metadata.begin_listing(database, attempt, give_up_after=5)
    before = await raw.fetchval("SELECT metadata_attempts FROM packages")
    tries = Tries()
    await advance_fleet_time(1)
    await tries.give_back(partial(metadata.uncount_listing, forgetful, attempt), at_once=True)
    assert await raw.fetchval("SELECT metadata_attempts FROM packages") == before - 1
    await advance_fleet_time(1)
    await metadata.begin_listing(database, Attempt(1), give_up_after=5)
    await tries.settle()
    assert await raw.fetchval("SELECT metadata_attempts FROM packages") == before


async def test_a_proof_is_given_back_once_whoever_takes_it_meanwhile(
    database, raw, forgetful, advance_fleet_time
):
    taken = await _next(database)
    tries = Tries()
    await advance_fleet_time(0.1)
    await tries.give_back(partial(proofs.uncount, forgetful, taken), at_once=True)
    assert await raw.fetchval("SELECT max(unended) FROM archive_sets") == 0
    await advance_fleet_time(0.1)
    assert len(await _next(database)) == 2
    await tries.settle()
    assert await raw.fetchval("SELECT min(unended) FROM archive_sets") == 1, "that of whoever took it"


async def test_a_proof_given_back_late_is_not_that_of_the_next_account(database, raw, advance_fleet_time):
    taken = await _next(database)
    await advance_fleet_time(60)
    (again,) = await _next(database)
    held = await raw.fetchval("SELECT not_before FROM archive_sets WHERE id = $1", again.set_id)
    await proofs.uncount(database, taken)
    row = await raw.fetchrow("SELECT unended, not_before FROM archive_sets WHERE id = $1", again.set_id)
    assert tuple(row) == (2, held)


async def test_nobody_begins_a_try_while_one_is_being_given_back():
    begun, written, tries = asyncio.Event(), asyncio.Event(), Tries()

    async def write():
        begun.set()
        await written.wait()

    await tries.give_back(write, at_once=False)
    first = asyncio.create_task(tries.settle())
    await begun.wait()
    second = asyncio.create_task(tries.settle())
    await asyncio.sleep(0)
    assert not second.done()
    written.set()
    await asyncio.gather(first, second)


async def test_a_set_that_nothing_can_prove_waits_so_long_and_says_so(database, raw, advance_fleet_time):
    (one, _) = await _next(database)
    assert not await proofs.settle_undecided(database, one, "nobody can tell", 3600.0)
    state, reason = await raw.fetchrow("SELECT state, reason FROM archive_sets WHERE id = $1", one.set_id)
    assert (state, reason) == ("collecting", "nobody can tell")
    await advance_fleet_time(3601)
    again = next(each for each in await _next(database) if each.set_id == one.set_id)
    assert await proofs.settle_undecided(database, again, "nobody can tell", 3600.0)
    row = await raw.fetchrow("SELECT state, reason, is_unproven FROM archive_sets WHERE id = $1", one.set_id)
    assert tuple(row) == ("ready", None, True)


async def test_a_further_part_makes_it_wait_anew(database, raw, advance_fleet_time):
    one = next(each for each in await _next(database) if each.name == "a.rar")
    await proofs.settle_undecided(database, one, "nobody can tell", 3600.0)
    await advance_fleet_time(3000)
    async with database.transaction("test.page") as connection:
        await keep_page(connection, await hold(database), [posted(9, "a.part3.rar")])
    assert await raw.fetchval("SELECT undecided_since FROM archive_sets WHERE id = $1", one.set_id) is None
