"""An upload that is begun and a package that is published without one: never both of one content."""

import asyncio
import contextlib
import uuid

import asyncpg
import pytest
from claims import claim_next
from hang_guard import until

from worker.domain.marked_set import MarkedMessage, MarkedSet
from worker.domain.marker import Marker
from worker.errors import BusyError
from worker.store import adoption, seen_again, uploads, workers
from worker.store.database import Database
from worker.store.uploads import IntentPart

pytestmark = pytest.mark.usefixtures("standing_fleet_time")
HASH = bytes(range(32))
_WORLD = """
    INSERT INTO accounts (phone, state) VALUES ('+1', 'ready');
    INSERT INTO channels (telegram_id, title, kind, is_source) VALUES (1, 'source', 'channel', true);
    INSERT INTO channels (telegram_id, title, kind, is_destination) VALUES (2, 'library', 'channel', true);
    INSERT INTO memberships (account_id, channel_id, can_post, visible_from) SELECT 1, id, true, 0 FROM channels;
    WITH made AS (
        INSERT INTO archive_sets (channel_id, name, format, state, part_count, total_size, lead_document_id, posted_at)
        VALUES (1, '1.zip', 'zip', 'ready', 1, 10, 7, now()) RETURNING id
    )
    INSERT INTO source_files (channel_id, message_id, document_id, file_name, size, posted_at, set_id, part_number)
    SELECT 1, 1, 7, '1.zip', 10, now(), id, 0 FROM made;
"""
_WITHDRAWN = """
    INSERT INTO packages (content_hash, file_name, file_size, archive_type, dest_channel_id, dest_message_id,
        part_count, state, withdrawn_at)
    VALUES ($1, '1.zip', 10, 'zip', 2, 5, 1, 'withdrawn', now()) RETURNING id
"""


class Pausing(Database):
    """Stands still right before each commit, until it is told to go on."""

    def __init__(self, address):
        super().__init__(address)
        self.reached, self.go_on = asyncio.Event(), asyncio.Event()

    @contextlib.asynccontextmanager
    async def transaction(self, name):
        async with super().transaction(name) as connection:
            yield connection
            self.reached.set()
            await self.go_on.wait()


@pytest.fixture
async def raw(database_url):
    connection = await asyncpg.connect(database_url)
    await connection.execute(_WORLD)
    yield connection
    await connection.close()


@pytest.fixture
async def slow(database_url):
    opened = Pausing(database_url)
    yield opened
    await opened.close()


@pytest.fixture
async def claim(database, raw):
    worker_id = uuid.uuid4()
    await workers.register(database, worker_id, host="h", pid=1, version="0", address=None)
    return await claim_next(database, 1, worker_id)


async def _begin(database, claim):
    part = IntentPart(0, "1.zip", 0, 10, 4711, "caption")
    try:
        return await uploads.create_intent(
            database, claim, account_id=1, destination_id=2, floor_id=0, content_hash=HASH, parts=[part]
        )
    except BusyError:
        return None


async def _seen_again(database, raw):
    package_id = await raw.fetchval(_WITHDRAWN, HASH)
    return lambda where: seen_again.publish_again(where, package_id, HASH)


async def _adopted(database, raw):
    marker = Marker(
        content_hash=HASH,
        total_size=10,
        offset=0,
        length=10,
        file_index=0,
        file_size=10,
        file_name="1.zip",
        source_channel=1,
        source_message=1,
        source_document=7,
    )
    message = MarkedMessage(
        message_id=5,
        document_id=6,
        file_name="1.zip",
        marker=marker,
    )
    found = MarkedSet(HASH, 10, (message,), ())
    return lambda where: adoption.adopt_package(where, found, 2)


async def _counts(raw):
    return (
        await raw.fetchval("SELECT count(*) FROM uploads WHERE state = 'open'"),
        await raw.fetchval("SELECT count(*) FROM packages WHERE state = 'published'"),
    )


async def _waits_for_a_lock(raw):
    return await raw.fetchval("SELECT EXISTS (SELECT FROM pg_locks WHERE NOT granted)")


@pytest.mark.parametrize("way", [_seen_again, _adopted])
async def test_where_an_upload_is_open_no_package_is_published_without_one(database, raw, claim, way):
    publish = await way(database, raw)
    assert await _begin(database, claim)
    assert not await publish(database)
    assert await _counts(raw) == (1, 0)


@pytest.mark.parametrize("way", [_seen_again, _adopted])
async def test_an_upload_that_is_just_being_begun_counts(database, raw, slow, claim, way):
    publish = await way(database, raw)
    beginning = asyncio.create_task(_begin(slow, claim))
    await slow.reached.wait()
    publishing = asyncio.create_task(publish(database))

    async def is_on_its_way():
        return publishing.done() or await _waits_for_a_lock(raw)

    await until(is_on_its_way)
    slow.go_on.set()
    assert await beginning
    assert not await publishing
    assert await _counts(raw) == (1, 0)


@pytest.mark.parametrize("way", [_seen_again, _adopted])
async def test_a_package_that_is_just_being_published_counts(database, raw, slow, claim, way):
    publish = await way(database, raw)
    publishing = asyncio.create_task(publish(slow))
    await slow.reached.wait()
    beginning = asyncio.create_task(_begin(database, claim))

    async def is_on_its_way():
        return beginning.done() or await _waits_for_a_lock(raw)

    await until(is_on_its_way)
    slow.go_on.set()
    assert await publishing
    assert await beginning is None
    assert await _counts(raw) == (0, 1)
