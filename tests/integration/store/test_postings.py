"""What is asked of the database right before a message is sent or deleted, each time that is tried."""

import asyncio
import uuid
from datetime import UTC, datetime
from types import SimpleNamespace

import asyncpg
import pytest
from claims import claim_next
from lost_reply import LosesOneReply
from manual_clock import ManualClock, settle

from worker.domain.telegram import ChannelRef, Message
from worker.errors import FenceLostError, WorkerTroubleError
from worker.flow.outbox import Outbox
from worker.pipeline.posting import Posting, PostingTransport, post
from worker.recovery.reconcile import _remove
from worker.store import open_intents, removals, uploads, workers
from worker.store.uploads import IntentPart

pytestmark = pytest.mark.usefixtures("standing_fleet_time")
HASH = bytes(range(32))
LIBRARY = ChannelRef(2, 1)
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


class Telegram:
    """Takes down what is sent and deleted."""

    def __init__(self):
        self.sent, self.deleted = [], []

    async def send_document(self, channel, file, *, caption, random_id, mime_type):
        self.sent.append(random_id)
        return Message(5, datetime.now(UTC), caption, is_ours=True)

    async def delete_messages(self, channel, ids):
        self.deleted.extend(ids)


class Doubtful:
    """A lease that is in doubt until a test says otherwise."""

    is_in_doubt = True

    def require(self):
        if self.is_in_doubt:
            raise WorkerTroubleError("the lease is in doubt")

    async def confirmed(self):
        pass


@pytest.fixture
async def claim(database, database_url):
    connection = await asyncpg.connect(database_url)
    await connection.execute(_WORLD)
    await connection.close()
    worker_id = uuid.uuid4()
    await workers.register(database, worker_id, host="h", pid=1, version="0", address=None)
    return await claim_next(database, 1, worker_id)


@pytest.fixture
async def intent(database, claim):
    part = IntentPart(0, "1.zip", 0, 10, 4711, "caption")
    return await uploads.create_intent(
        database, claim, account_id=1, destination_id=2, floor_id=0, content_hash=HASH, parts=[part]
    )


async def test_a_deletion_that_waited_while_the_upload_changed_hands_is_not_made(database, claim, intent):
    await uploads.mark_sent(database, intent, 0, message_id=5, document_id=6)
    await open_intents.abandon(database, await open_intents.give_up(database, intent, "gone"), claim)
    (item,) = await removals.left_of_ended(database, None)
    fence = await removals.own_ended(database, item.upload_id)
    telegram, trust, clock = Telegram(), Doubtful(), ManualClock()
    transport = PostingTransport(telegram, trust)
    deps = SimpleNamespace(
        database=database,
        outbox=Outbox(transport, clock=clock),
        transport=transport,
        account=SimpleNamespace(id=1),
    )
    removing = asyncio.create_task(_remove(deps, LIBRARY, item, fence, is_there=True))
    while not clock.sleeping:
        await settle()
    # Its lock was somebody else's for a moment.
    await removals.own_ended(database, item.upload_id)
    trust.is_in_doubt = False
    while not removing.done():
        await clock.advance(10)
        await asyncio.sleep(0.01)
    with pytest.raises(FenceLostError):
        await removing
    assert telegram.deleted == []


async def test_a_part_whose_beginning_got_no_answer_is_begun_again(database_url, intent):
    forgetful = LosesOneReply(database_url)
    telegram, clock = Telegram(), ManualClock()
    transport = PostingTransport(telegram, Doubtful())

    async def begin():
        await uploads.mark_sending(forgetful, intent, 0)

    posting = Posting(LIBRARY, None, "caption", begin)
    posted = asyncio.create_task(post(Outbox(transport, clock=clock), transport, 1, posting, 4711))
    while not posted.done():
        await clock.advance(10)
        await asyncio.sleep(0.01)
    assert (await posted).message_id == 5
    assert telegram.sent == [4711]
    await forgetful.close()
