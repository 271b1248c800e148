"""The operations chat: how an account addresses it, and which message of it is the account's own."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from sqlalchemy import text

from worker.domain.telegram import ChannelRef
from worker.errors import NoAccessError

if TYPE_CHECKING:
    from worker.store.database import Database

_CHAT = text("""
    SELECT p.access_hash, m.can_post, c.is_destination FROM channels c
    JOIN memberships m ON m.channel_id = c.id AND m.account_id = :account
    JOIN peers p ON p.account_id = m.account_id AND p.telegram_id = c.telegram_id
    WHERE c.telegram_id = :chat
""")
_KEEP = text("""
    INSERT INTO settings (key, value, updated_at) VALUES (:key, CAST(:value AS jsonb), fleet_now())
    ON CONFLICT (key) DO UPDATE SET value = excluded.value, updated_at = excluded.updated_at
""")
_FORGET = text("DELETE FROM settings WHERE key = :key")
_KEPT = text("""
    SELECT CAST(value ->> 'message' AS bigint) FROM settings
    WHERE key = :key AND CAST(value ->> 'chat' AS bigint) = :chat
""")


async def reporting_chat(database: Database, account_id: int, telegram_id: int) -> ChannelRef:
    """How this account addresses the operations chat; ``NoAccessError`` if it cannot write there."""
    async with database.reading() as connection:
        row = (await connection.execute(_CHAT, {"account": account_id, "chat": telegram_id})).one_or_none()
    if row is not None and row.is_destination:
        # Reports would lie between the archives there, and share their pace.
        raise NoAccessError("operations.chat is the destination channel", remedy="choose a chat of its own")
    if row is None or not row.can_post:
        raise NoAccessError(
            f"account {account_id} may not write to operations.chat {telegram_id}",
            remedy="add it to that chat with the right to post",
        )
    return ChannelRef(telegram_id, row.access_hash)


async def kept_message(database: Database, account_id: int, chat: int) -> int | None:
    """The progress message that an earlier run of this account left in the chat, if it did."""
    async with database.reading() as connection:
        found = await connection.execute(_KEPT, {"key": _key(account_id), "chat": chat})
        message: int | None = found.scalar_one_or_none()
        return message


async def keep_message(database: Database, account_id: int, chat: int, message: int | None) -> None:
    """Remember the account's progress message for whoever runs it next; None: there is none any more."""
    async with database.transaction("operations.message") as connection:
        if message is None:
            await connection.execute(_FORGET, {"key": _key(account_id)})
        else:
            value = json.dumps({"chat": chat, "message": message})
            await connection.execute(_KEEP, {"key": _key(account_id), "value": value})


def _key(account_id: int) -> str:
    return f"operations_message:account={account_id}"
