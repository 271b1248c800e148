"""Which messages may be deleted, and what is known after a commit whose answer was lost."""

import contextlib
import uuid
from types import SimpleNamespace

import asyncpg
import pytest

from worker.errors import FenceLostError, OutcomeUnknownError
from worker.pipeline.record import record
from worker.store import open_intents, removals, sets, uploads, workers
from worker.store.database import Database
from worker.store.uploads import IntentPart

HASH = bytes(range(32))
_WORLD = """
    INSERT INTO accounts (phone, state) VALUES ('+1', 'ready');
    INSERT INTO channels (telegram_id, title, kind, is_source) VALUES (1, 'source', 'channel', true);
    INSERT INTO channels (telegram_id, title, kind, is_destination) VALUES (2, 'library', 'channel', true);
    INSERT INTO memberships (account_id, channel_id, visible_from) SELECT a.id, c.id, 0 FROM accounts a, channels c;
    WITH made AS (
        INSERT INTO archive_sets (channel_id, name, format, state, part_count, total_size, lead_document_id, posted_at)
        VALUES (1, '1.zip', 'zip', 'ready', 1, 10, 7, now()) RETURNING id
    )
    INSERT INTO source_files (channel_id, message_id, document_id, file_name, size, posted_at, set_id, part_number)
    SELECT 1, 1, 7, '1.zip', 10, now(), id, 0 FROM made;
"""


@pytest.fixture
async def raw(database_url):
    connection = await asyncpg.connect(database_url)
    await connection.execute(_WORLD)
    yield connection
    await connection.close()


@pytest.fixture
async def claim(database, raw):
    worker_id = uuid.uuid4()
    await workers.register(database, worker_id, host="h", pid=1, version="0", address=None)
    (set_id,) = await raw.fetchrow("SELECT id FROM archive_sets")
    return await sets.claim_set(database, 1, worker_id, set_id)


async def _sent(database, claim):
    part = IntentPart(0, "1.zip", 0, 10, 4711, "caption")
    intent = await uploads.create_intent(
        database, claim, account_id=1, destination_id=2, floor_id=0, content_hash=HASH, parts=[part]
    )
    await uploads.mark_sent(database, intent, 0, message_id=5, document_id=6)
    return await uploads.reload(database, intent)


class LosesReplies(Database):
    """Commits, and then behaves as if the answer had not come."""

    @contextlib.asynccontextmanager
    async def transaction(self, name):
        async with super().transaction(name) as connection:
            yield connection
        raise OutcomeUnknownError(f"the commit of {name} got no answer")


async def test_a_stub_whose_commit_got_no_answer_is_read_back_and_counts(database, database_url, claim):
    intent = await _sent(database, claim)
    forgetful = LosesReplies(database_url)
    try:
        package_id = await record(SimpleNamespace(database=forgetful, run_id=None), claim, intent)
    finally:
        await forgetful.close()
    async with database.reading() as connection:
        row = (await connection.exec_driver_sql("SELECT id, state FROM packages")).one()
    assert tuple(row) == (package_id, "published")


async def test_the_messages_of_a_package_are_never_left_over(database, claim):
    intent = await _sent(database, claim)
    await record(SimpleNamespace(database=database, run_id=None), claim, intent)
    assert await removals.left_of_ended(database, None) == []


async def test_the_messages_of_an_upload_that_goes_on_are_not_removable(database, claim):
    intent = await _sent(database, claim)
    (item,) = await removals.left_of(database, intent.upload_id)
    with pytest.raises(FenceLostError):
        await removals.require_removable(database, item, intent.fence)
    await open_intents.give_up(database, intent, "its source is gone")
    await removals.require_removable(database, item, intent.fence)


async def test_an_old_owner_removes_nothing(database, claim):
    intent = await _sent(database, claim)
    await open_intents.give_up(database, intent, "its source is gone")
    (item,) = await removals.left_of(database, intent.upload_id)
    await open_intents.own(database, intent.upload_id, 1)
    with pytest.raises(FenceLostError):
        await removals.require_removable(database, item, intent.fence)


async def test_what_an_abandoned_upload_left_is_named_until_it_is_deleted(database, claim):
    intent = await open_intents.give_up(database, await _sent(database, claim), "its source is gone")
    await open_intents.abandon(database, intent, claim)
    (item,) = await removals.left_of_ended(database, None)
    assert item.message_id == 5
    fence = await removals.own_ended(database, item.upload_id)
    await removals.require_removable(database, item, fence)
    await removals.mark_deleted(database, item, fence)
    assert await removals.left_of_ended(database, None) == []
