"""How much of a channel the account sees: asked before anything is concluded from what is missing.

What an account may not see looks to it as if it were gone. It may be shut out and let in again between any
two calls, and then sees no more than a newcomer: so the question comes after the answer that lacks something.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from worker.errors import NoAccessError, RetryableError
from worker.store.channels import channel_ref
from worker.store.visibility import forget_visibility, note_visibility
from worker.telegram.reading import visibility

if TYPE_CHECKING:
    from collections.abc import Iterable

    from worker.domain.telegram import ChannelRef
    from worker.pipeline.deps import Deps
    from worker.store.cursors import Readable, Source
    from worker.store.lookouts import Place


class SightChangedError(RetryableError):
    """Read again: how much of the channel this account sees has to be asked anew first."""


async def look_how_far(deps: Deps, channel_id: int, ref: ChannelRef) -> int:
    """The first message of the channel that the account sees, 0: all of it; asked now, and kept."""
    seen = await visibility(deps.gateway, ref)
    await note_visibility(deps.database, deps.account.id, channel_id, seen)
    return seen.first


async def require_sight(deps: Deps, channel_id: int, messages: Iterable[int], what: str) -> None:
    """Refuse to believe that these messages are gone if the account does not see where they were."""
    channel = await channel_ref(deps.database, deps.account.id, channel_id)
    first = await look_how_far(deps, channel_id, channel)
    if min(messages, default=first) < first:
        # To an account that came back they only look gone; from here on others are asked.
        raise NoAccessError(f"account {deps.account.id} does not see all of {what}")


def is_outdated(deps: Deps, readable: Readable | Source | Place) -> bool:
    """Whether Telegram has told of another membership than the one that the account's sight belongs to."""
    told = deps.gateway.member_since(readable.ref)
    return None not in (told, readable.member_since) and told != readable.member_since


async def require_all_seen(deps: Deps, source: Source) -> None:
    """Stop, once an answer has come in, if by now a part of what the account saw is hidden from it."""
    if first := await look_how_far(deps, source.channel_id, source.ref):
        what = f"account {deps.account.id} sees nothing of {source.title} below message {first} any more"
        raise SightChangedError(what)


async def require_same_sight(deps: Deps, source: Source) -> None:
    """Stop, once an answer has come in, if it was given to a membership that nobody has asked about."""
    if is_outdated(deps, source):
        await forget_visibility(deps.database, deps.account.id, source.channel_id)
        raise SightChangedError(f"account {deps.account.id} was shut out of {source.title} and let in again")
