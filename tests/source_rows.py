"""A source that an account reads, and messages to be kept of it, without any Telegram."""

from datetime import UTC, datetime

import asyncpg

from worker.domain.telegram import ChannelHead, Document, Message
from worker.store import cursors

_WORLD = """
    INSERT INTO accounts (phone, state) VALUES ('+1', 'ready');
    INSERT INTO channels (telegram_id, title, kind, is_source) VALUES (1, 'Vault', 'channel', true);
    INSERT INTO memberships (account_id, channel_id, visible_from) VALUES (1, 1, 0);
    INSERT INTO peers (account_id, telegram_id, access_hash) VALUES (1, 1, 7);
"""


async def open_source(database, database_url):
    """The source, held by the one account there is, before anything of it was read."""
    connection = await asyncpg.connect(database_url)
    try:
        await connection.execute(_WORLD)
    finally:
        await connection.close()
    return await hold(database)


async def hold(database, top=1000, pts=1):
    (readable,) = await cursors.readable_sources(database, 1)
    return await cursors.hold(database, 1, readable, ChannelHead(top, pts), 60.0)


def posted(message_id, name, *, document_id=None, size=10, text="", **options):
    document = Document(document_id or 5000 + message_id, 0, b"", 2, size, name, "application/zip")
    date = datetime.fromtimestamp(1_700_000_000 + message_id, UTC)
    return Message(message_id, date, text, is_ours=False, document=document, **options)
