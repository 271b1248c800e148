"""Claims and intents: one owner at a time, and nothing written by the one before."""

import uuid
from dataclasses import replace
from types import SimpleNamespace

import asyncpg
import pytest
from claims import FakeDisk, claim_next, let_go
from hang_guard import HANG_SECONDS
from lost_reply import LosesOneReply

from worker.config.settings import Settings
from worker.domain.listing import Entry
from worker.errors import BusyError, CommitUnknownError, FenceLostError
from worker.pipeline.claim import claim_begun
from worker.pipeline.claim import claim_next as claim_for
from worker.pipeline.tries import Tries
from worker.store import metadata, open_intents, packages, sets, uploads, workers
from worker.store.claiming import Turn
from worker.store.clock_steps import bring_back_waits
from worker.store.leases import Tenure
from worker.store.locks import LockSession
from worker.store.unheard_claims import give_back_unheard
from worker.store.uploads import IntentPart

# How long a busy machine takes for a test ends no wait and no claim.
pytestmark = pytest.mark.usefixtures("standing_fleet_time")
HASH = bytes(range(32))
_WORLD = """
    INSERT INTO accounts (phone, state) VALUES ('+1', 'ready'), ('+2', 'ready');
    INSERT INTO channels (telegram_id, title, kind, is_source) VALUES (1, 'source', 'channel', true);
    INSERT INTO channels (telegram_id, title, kind, is_destination) VALUES (2, 'library', 'channel', true);
    INSERT INTO memberships (account_id, channel_id, can_post, visible_from) SELECT a.id, c.id, true, 0 FROM accounts a, channels c;
"""
_SET = """
    WITH made AS (
        INSERT INTO archive_sets (channel_id, name, format, state, part_count, total_size, lead_document_id, posted_at)
        VALUES (1, $1, 'zip', 'ready', 1, 10, $2, now()) RETURNING id
    )
    INSERT INTO source_files (channel_id, message_id, document_id, file_name, size, posted_at, set_id, part_number)
    SELECT 1, $3, $2, $1, 10, now(), id, 0 FROM made RETURNING set_id
"""


@pytest.fixture
async def raw(database_url):
    connection = await asyncpg.connect(database_url)
    await connection.execute(_WORLD)
    yield connection
    await connection.close()


@pytest.fixture
async def worker(database, raw):
    return await _new_worker(database)


async def _new_worker(database) -> uuid.UUID:
    worker_id = uuid.uuid4()
    await workers.register(database, worker_id, host="h", pid=1, version="0", address=None)
    return worker_id


async def _add_set(raw, number: int, document: int | None = None) -> int:
    return await raw.fetchval(_SET, f"{number}.zip", document or number, number)


async def test_a_claim_can_be_had_once(database, raw, worker):
    await _add_set(raw, 1)
    claim = await claim_next(database, 1, worker)
    assert claim is not None
    assert (claim.fence, claim.name, [part.document_id for part in claim.parts]) == (1, "1.zip", [1])
    assert await claim_next(database, 2, worker) is None


async def test_two_postings_of_one_document_are_never_fetched_at_once(database, raw, worker):
    await _add_set(raw, 1, document=7)
    await _add_set(raw, 2, document=7)
    first = await claim_next(database, 1, worker)
    assert await claim_next(database, 2, worker) is None
    await sets.hand_back(database, first, reason=None, wait_seconds=60)
    second = await claim_next(database, 2, worker)
    assert second.set_id != first.set_id


async def test_an_old_owner_writes_nothing_after_a_new_one_has_claimed(database, raw, worker):
    await _add_set(raw, 1)
    old = await claim_next(database, 1, worker)
    await let_go(database, 1)
    new = await claim_next(database, 2, worker)
    assert new.fence == old.fence + 1

    with pytest.raises(FenceLostError):
        await sets.hand_back(database, old, reason="too late", wait_seconds=0)
    with pytest.raises(FenceLostError):
        await sets.save_hashes(database, old, HASH, [HASH])
    with pytest.raises(FenceLostError):
        await _intend(database, old)
    row = await raw.fetchrow("SELECT state, claimed_by, content_hash, reason FROM archive_sets")
    assert tuple(row) == ("claimed", 2, None, None)


async def test_who_has_lost_the_account_releases_none_of_its_next_owners_claims(database, raw, worker):
    await _add_set(raw, 1)
    await let_go(database, 1, worker)
    late = Tenure(1, worker, await raw.fetchval("SELECT lease_epoch FROM accounts WHERE id = 1"), 0.0)
    successor = await _new_worker(database)
    await let_go(database, 1, successor)
    await claim_next(database, 1, successor)
    with pytest.raises(FenceLostError):
        await sets.release_claims_of(database, late)
    assert await raw.fetchval("SELECT state FROM archive_sets") == "claimed"


async def test_a_claim_that_got_no_answer_is_given_back_and_made_again(database_url, database, raw, worker):
    await _add_set(raw, 1)
    await raw.execute("INSERT INTO peers (account_id, telegram_id, access_hash) VALUES (1, 2, 1)")
    forgetful, tries = LosesOneReply(database_url), Tries()
    deps = SimpleNamespace(
        database=forgetful,
        account=SimpleNamespace(id=1),
        worker_id=worker,
        settings=Settings(),
        standing=SimpleNamespace(is_premium=False),
        workspace=FakeDisk(),
        tries=tries,
        trust=SimpleNamespace(is_trusted=False),
    )
    with pytest.raises(CommitUnknownError):
        await claim_for(deps, Turn())
    assert await raw.fetchval("SELECT state FROM archive_sets") == "claimed"
    await tries.settle()
    again = await claim_for(deps, Turn())
    assert again.fence == 2
    await give_back_unheard(database, replace(again, fence=1))
    assert await raw.fetchval("SELECT state FROM archive_sets") == "claimed", "it was given back before"
    await forgetful.close()


async def test_a_begun_set_whose_claim_got_no_answer_is_given_back(database_url, database, raw, worker):
    set_id = await _add_set(raw, 1)
    forgetful, tries = LosesOneReply(database_url), Tries()
    deps = SimpleNamespace(
        database=forgetful,
        account=SimpleNamespace(id=1),
        worker_id=worker,
        tries=tries,
        trust=SimpleNamespace(is_trusted=True),
    )
    with pytest.raises(CommitUnknownError):
        await claim_begun(deps, set_id)
    assert (await claim_begun(deps, set_id)).fence == 2
    await forgetful.close()


async def test_claims_of_a_silent_worker_become_ready_and_those_of_a_live_one_stay(
    database, raw, worker, advance_fleet_time
):
    await _add_set(raw, 1)
    await _add_set(raw, 2)
    lively = await _new_worker(database)
    dead = await claim_next(database, 1, worker)
    alive = await claim_next(database, 2, lively)
    await advance_fleet_time(60)
    await workers.heartbeat(database, lively, 0)

    assert await workers.bury_dead_workers(database, 30) == 0
    assert await sets.release_dead_claims(database, uuid.uuid4()) == 1
    states = dict(await raw.fetch("SELECT id, state FROM archive_sets"))
    assert states == {dead.set_id: "ready", alive.set_id: "claimed"}


@pytest.mark.parametrize("step", [120, -120])
async def test_a_clock_that_steps_buries_nobody_who_holds_an_account(
    database, database_url, raw, worker, advance_fleet_time, step
):
    await _add_set(raw, 1)
    await claim_next(database, 1, worker)
    idle = await _new_worker(database)
    await raw.execute("UPDATE accounts SET worker_id = $1 WHERE id = 1", worker)
    locks = await LockSession.open(database_url, answer_within=HANG_SECONDS)
    assert await locks.try_account(1)
    await advance_fleet_time(step)
    assert await workers.silent_workers(database, 30) == [idle], "it has nothing to lose, and beats again"
    await workers.bury_dead_workers(database, 30)
    assert await sets.release_dead_claims(database, uuid.uuid4()) == 0
    await locks.close()
    await workers.bury_dead_workers(database, 30)
    assert await sets.release_dead_claims(database, uuid.uuid4()) == 1


async def test_a_set_waits_until_its_time_and_keeps_its_reason(database, raw, worker, advance_fleet_time):
    await _add_set(raw, 1)
    claim = await claim_next(database, 1, worker)
    await sets.hand_back(database, claim, reason="flood wait", wait_seconds=100, counts=True)
    assert await claim_next(database, 1, worker) is None
    await advance_fleet_time(101)
    again = await claim_next(database, 1, worker)
    assert again.attempts == 1


async def _intend(database, claim, account_id: int = 1):
    part = IntentPart(0, "1.zip", 0, 10, 4711, "caption")
    return await uploads.create_intent(
        database, claim, account_id=account_id, destination_id=2, floor_id=0, content_hash=HASH, parts=[part]
    )


async def test_a_clock_that_steps_back_lets_no_set_wait_longer_than_it_was_told_to(
    database, raw, worker, advance_fleet_time
):
    await _add_set(raw, 1)
    await _add_set(raw, 2)
    claim = await claim_next(database, 1, worker)
    await sets.hand_back(database, claim, reason="flood wait", wait_seconds=100, counts=True)
    await advance_fleet_time(-3600)
    assert await claim_next(database, 1, worker) is None
    assert await bring_back_waits(database) == 2
    fresh = await claim_next(database, 1, worker)
    assert fresh.set_id != claim.set_id
    assert await claim_next(database, 1, worker) is None, "it has as long to wait as before"
    await advance_fleet_time(101)
    assert (await claim_next(database, 1, worker)).set_id == claim.set_id
    assert await bring_back_waits(database) == 0


async def test_a_set_with_an_open_intent_is_left_to_the_intents_account(database, raw, worker):
    await _add_set(raw, 1)
    claim = await claim_next(database, 1, worker)
    intent = await _intend(database, claim)
    await sets.hand_back(database, claim, reason=None, wait_seconds=0)
    assert await claim_next(database, 2, worker) is None
    assert [begun.upload_id for begun in await open_intents.begun_by(database, 1)] == [intent.upload_id]
    assert (await sets.claim_set(database, 1, worker, intent.set_id)).set_id == claim.set_id


async def test_an_intent_that_was_taken_over_lets_its_old_owner_write_nothing(database, raw, worker):
    await _add_set(raw, 1)
    claim = await claim_next(database, 1, worker)
    old = await _intend(database, claim)
    new = await open_intents.own(database, old.upload_id, 1)
    assert new.fence == old.fence + 1
    assert [part.plan.random_id for part in new.parts] == [4711]

    with pytest.raises(FenceLostError):
        await uploads.mark_sending(database, old, 0)
    with pytest.raises(FenceLostError):
        await uploads.mark_sent(database, old, 0, message_id=5, document_id=6)
    with pytest.raises(FenceLostError):
        await packages.record_stub(database, claim, old, None)
    assert await raw.fetchval("SELECT state FROM upload_parts") == "planned"


async def test_stub_intent_and_set_end_in_one_step_and_metadata_follows(database, raw, worker):
    await _add_set(raw, 1)
    claim = await claim_next(database, 1, worker)
    intent = await _intend(database, claim)
    await uploads.mark_sending(database, intent, 0)
    await uploads.mark_sent(database, intent, 0, message_id=5, document_id=6)
    intent = await uploads.reload(database, intent)
    package_id = await packages.record_stub(database, claim, intent, None)

    assert await raw.fetchval("SELECT state FROM archive_sets") == "published"
    assert await raw.fetchval("SELECT state FROM uploads") == "done"
    stub = await raw.fetchrow("SELECT dest_message_id, file_count, metadata, part_count FROM packages")
    assert tuple(stub) == (5, 0, "pending", 1)
    assert [p.package_id for p in await metadata.pending_of(database, 1, limit=9)] == [package_id]

    entries = [
        Entry("a.txt", 3, 3, 0, "2026-01-01T12:00:00", False, False),
        Entry("bad\0name/", 0, 0, None, None, True, False),
    ]
    await packages.complete(database, package_id, packages.Metadata(entries, ["unsafe-paths"], unlisted=7))
    assert await raw.fetchval("SELECT state FROM archive_sets") == "indexed"
    assert tuple(await raw.fetchrow("SELECT file_count, metadata, marks FROM packages")) == (
        1 + 7,
        "complete",
        ["unsafe-paths"],
    )
    assert await metadata.pending_of(database, 1, limit=9) == []


async def test_a_listing_that_keeps_failing_is_given_up_and_the_package_stays(database, raw, worker):
    await _add_set(raw, 1)
    claim = await claim_next(database, 1, worker)
    intent = await _intend(database, claim)
    await uploads.mark_sent(database, intent, 0, message_id=5, document_id=6)
    package_id = await packages.record_stub(database, claim, await uploads.reload(database, intent), None)
    for _ in range(2):
        assert await metadata.begin_listing(database, metadata.Attempt(package_id), give_up_after=3)
        await metadata.note_failure(
            database, package_id, "the source is gone", give_up_after=3, base_secs=60, cap_secs=3600
        )
    row = await raw.fetchrow("SELECT state, metadata, metadata_reason, metadata_attempts FROM packages")
    assert tuple(row) == ("published", "failed", "the source is gone", 3)
    assert await raw.fetchval("SELECT state FROM archive_sets") == "indexed"
    assert await metadata.pending_of(database, 1, limit=9) == []


async def test_a_set_with_an_open_intent_is_never_given_up(database, raw, worker):
    await _add_set(raw, 1)
    claim = await claim_next(database, 1, worker)
    await _intend(database, claim)
    await sets.hand_back(database, claim, reason="refused", wait_seconds=0, counts=True, give_up=True)
    assert await raw.fetchval("SELECT state FROM archive_sets") == "ready"


async def test_a_run_whose_lease_was_lost_is_closed_by_the_next_one_and_by_the_sweep(database, raw, worker):
    following = await _new_worker(database)
    await workers.start_run(database, worker, 1)
    left = await workers.start_run(database, following, 1)
    assert [row["id"] for row in await raw.fetch("SELECT id FROM runs WHERE ended_at IS NULL")] == [left]
    await workers.stopped(database, following)
    assert await workers.bury_dead_workers(database, 30) == 1
    assert await raw.fetch("SELECT id FROM runs WHERE ended_at IS NULL") == []


async def test_no_intent_is_made_for_a_content_that_was_published_since_the_look(database, raw, worker):
    await _add_set(raw, 1)
    await _add_set(raw, 2)
    first = await claim_next(database, 1, worker)
    late = await claim_next(database, 2, worker)
    intent = await _intend(database, first)
    with pytest.raises(BusyError):
        await _intend(database, late, account_id=2)
    await uploads.mark_sent(database, intent, 0, message_id=7, document_id=8)
    await packages.record_stub(database, first, await uploads.reload(database, intent), None)
    with pytest.raises(BusyError):
        await _intend(database, late, account_id=2)


async def test_nothing_becomes_a_duplicate_of_a_package_that_is_withdrawn_by_now(database, raw, worker):
    await _add_set(raw, 1)
    await _add_set(raw, 2)
    first = await claim_next(database, 1, worker)
    other = await claim_next(database, 2, worker)
    intent = await _intend(database, first)
    await uploads.mark_sent(database, intent, 0, message_id=7, document_id=8)
    package_id = await packages.record_stub(database, first, await uploads.reload(database, intent), None)
    await raw.execute("UPDATE packages SET state = 'withdrawn', withdrawn_at = fleet_now()")
    with pytest.raises(BusyError):
        await sets.mark_duplicate(database, other, package_id)
