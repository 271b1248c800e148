"""What a person means by ``--account`` and ``--channel``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from worker.domain.phone import masked_phone
from worker.store.accounts import find_account
from worker.store.known_channels import find_channel

if TYPE_CHECKING:
    from worker.store.database import Database


@dataclass(frozen=True, slots=True)
class Scope:
    """What rests or goes on, by our numbers and in words."""

    account: int | None
    channel: int | None
    what: str


async def find_scope(database: Database, account: str | None, channel: str | None) -> Scope:
    """The account, the channel, both or everything; what is not known is refused."""
    account_id = channel_id = None
    words = []
    if account is not None:
        found = await find_account(database, account)
        account_id = found.id
        words.append(found.display_name or masked_phone(found.phone))
    if channel is not None:
        named = await find_channel(database, channel)
        channel_id, title = named.id, named.title
        words.append(title)
    return Scope(account_id, channel_id, " in ".join(words) or "the fleet")
