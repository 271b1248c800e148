"""How much of the destinations an account sees, asked before it concludes anything from what it misses."""

from __future__ import annotations

from typing import TYPE_CHECKING

from worker.errors import NoAccessError, NotBeforeError, RefusedError
from worker.log import get_logger
from worker.pipeline.sight import look_how_far
from worker.store.channels import channel_ref
from worker.store.reach import note_no_access, title_of
from worker.store.visibility import unasked_destinations
from worker.store.withdrawals import destinations_of
from worker.telegram.reading import visibility

if TYPE_CHECKING:
    from worker.domain.telegram import ChannelRef
    from worker.pipeline.deps import Deps
    from worker.store.uploads import Intent
    from worker.store.withdrawals import ReadableDestination


log = get_logger(__name__)


class PartialSightError(NoAccessError):
    """This account sees only the newer part of the channel; ask one that sees all of it."""


async def require_whole_history(deps: Deps, channel_id: int, ref: ChannelRef) -> None:
    """Refuse where older messages would only look as if they were gone."""
    if first := await look_how_far(deps, channel_id, ref):
        title = await title_of(deps.database, channel_id)
        raise PartialSightError(
            f"account {deps.account.id} sees {title} only from message {first} on",
            remedy="let new members see its history, or log in an account that does",
        )


class UnseenError(NotBeforeError):
    """This account may have sent what it cannot see; one that sees it may go on."""


async def require_sight_of(deps: Deps, intent: Intent) -> None:
    """Wait while messages that this intent may have sent lie where this account does not see them.

    Asked after the look for them, and, of an intent that is given up, before what it sent is removed.
    """
    given_up = intent.reason is not None
    if not any(part.state == "sending" or (given_up and part.state == "sent") for part in intent.parts):
        return
    ref = await channel_ref(deps.database, deps.account.id, intent.destination_id)
    if await look_how_far(deps, intent.destination_id, ref) <= intent.floor_id + 1:
        return
    title = await title_of(deps.database, intent.destination_id)
    raise UnseenError(
        f"account {deps.account.id} does not see all that it has sent to {title}",
        seconds=deps.settings.fleet.retry_base_secs,
        remedy=f"let new members see its history, or run: worker recover --take-over {deps.account.id}",
    )


class Sight:
    """What one account's recovery finds out about the destinations it sees.

    It is written down for the fleet. A dry run goes by it just as well, and keeps it to itself.
    """

    def __init__(self, deps: Deps, *, dry_run: bool = False) -> None:
        self._deps = deps
        self._dry_run = dry_run
        self._unwritten: dict[int, int | None] = {}

    async def ask(self) -> None:
        """Ask Telegram about each destination of which nobody has asked before."""
        for channel_id, ref in await unasked_destinations(self._deps.database, self._deps.account.id):
            try:
                await self.look(channel_id, ref)
            except NoAccessError:
                await self.shut_out(channel_id)
            except (NotBeforeError, RefusedError) as error:
                # Nothing is concluded there meanwhile; everything else goes on.
                log.info("sight.not_asked", channel=channel_id, reason=str(error))

    async def look(self, channel_id: int, ref: ChannelRef) -> int:
        """The first message that the account sees, 0: all of them; asked of Telegram anew."""
        if not self._dry_run:
            return await look_how_far(self._deps, channel_id, ref)
        seen = await visibility(self._deps.gateway, ref)
        self._unwritten[channel_id] = seen.first
        return seen.first

    async def shut_out(self, channel_id: int) -> None:
        """Telegram has refused the account there."""
        if self._dry_run:
            self._unwritten[channel_id] = None
        else:
            await note_no_access(self._deps.database, self._deps.account.id, channel_id)

    async def destinations(self) -> list[ReadableDestination]:
        """Where packages lie that the account sees all of."""
        return await destinations_of(self._deps.database, self._deps.account.id, self._unwritten)

    @property
    def whole(self) -> list[int]:
        """The channels that were found to be seen whole, and are not written down as such."""
        return [channel_id for channel_id, first in self._unwritten.items() if first == 0]
