"""The look through a destination before anything is published there.

After a restored backup, or with a fresh database, it may hold packages that no row knows, and they would be
published a second time.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING, NoReturn

from worker.errors import BusyError, NoAccessError, RefusedError, UserError
from worker.log import get_logger
from worker.pipeline.sight import is_outdated
from worker.recovery.adopting import MOST_NAMED, Adopting, Outcome, go_through
from worker.recovery.authority import authority_in
from worker.recovery.sight import Sight
from worker.store import lookouts

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from worker.pipeline.deps import Deps
    from worker.store.lookouts import Place
    from worker.store.withdrawals import ReadableDestination

log = get_logger(__name__)
_SECONDS_BETWEEN_WORDS = 15.0
_ANOTHER = "it is tried again by itself; or choose another one: worker channels destination CHANNEL"
_WANTS_A_PERSON = (
    Outcome.DOUBLED,
    Outcome.INCOMPLETE,
    Outcome.NOT_OURS,
    Outcome.OLD,
    Outcome.UNFIT,
)


class Lookout:
    """Looks, once per process, for what the destinations hold beyond all that is known.

    One account looks, and the others wait for that. One that does not see everything above what is known
    cannot look: it waits for the look of another, of this process or, by what that has written down, of any.
    """

    def __init__(self) -> None:
        self._lock = asyncio.Lock()
        # Where nothing is left to be found, and archives may be published.
        self.channels: set[int] = set()
        self._accounts: set[int] = set()
        # When a look was repeated for others, and when an account was asked again how much it sees.
        self._repeated_at = float("-inf")
        self._asked_at: dict[int, float] = {}

    async def look(self, deps: Deps, is_stopping: Callable[[], bool], tell: Callable[[str], None]) -> bool:
        """Whether this account may publish; not if it was told to stop on the way and goes on later.

        ``UserError`` says why it may not as things are.
        """
        async with self._lock:
            if deps.account.id not in self._accounts:
                for destination in await Sight(deps).destinations():
                    if destination.channel_id in self.channels:
                        continue
                    try:
                        if not await _look_at(deps, destination, is_stopping, tell):
                            return False
                    except NoAccessError:
                        await Sight(deps).shut_out(destination.channel_id)
                        continue
                    except RefusedError as error:
                        # Where no archives go, nothing depends on it; where they do, it is asked again below.
                        log.warning("lookout.refused", channel=destination.title, reason=str(error))
                        continue
                    self.channels.add(destination.channel_id)
                self._accounts.add(deps.account.id)
            return await self._look_where_archives_go(deps, is_stopping, tell)

    async def _look_where_archives_go(
        self, deps: Deps, is_stopping: Callable[[], bool], tell: Callable[[str], None]
    ) -> bool:
        place = await lookouts.place_of(deps.database, deps.account.id)
        if place is None:
            # It may not post there either, as whoever claims a set is told.
            return True
        is_looked_through = place.channel_id in self.channels
        if is_looked_through and not (place.is_awaited and self._may_repeat(deps)):
            return True
        try:
            first = await self._first_seen(deps, place)
            if first > place.known_to + 1:
                if place.can_post and not is_looked_through:
                    await _say_what_it_waits_for(deps, place)
                return True
            if not await _look_at(deps, place, is_stopping, tell):
                return False
        except NoAccessError as error:
            await Sight(deps).shut_out(place.channel_id)
            what = f"account {deps.account.id} may not read {place.title}: {error.what}"
            raise UserError(what, remedy="let it in again; until then it publishes nothing there") from error
        except RefusedError as error:
            if is_looked_through:
                return True
            what = f"{place.title} cannot be looked through, so nothing is published there: {error.what}"
            raise UserError(what, remedy=_ANOTHER) from error
        self.channels.add(place.channel_id)
        return True

    def _may_repeat(self, deps: Deps) -> bool:
        present = deps.clock.monotonic()
        if present - self._repeated_at < deps.settings.fleet.retry_base_secs:
            return False
        self._repeated_at = present
        return True

    async def _first_seen(self, deps: Deps, place: Place) -> int:
        """The first message that the account sees; asked again now and then while it sees too little."""
        first, present = place.visible_from, deps.clock.monotonic()
        if first is not None and not is_outdated(deps, place):
            asked_at = self._asked_at.get(deps.account.id, float("-inf"))
            if first <= place.known_to + 1 or present - asked_at < deps.settings.fleet.cycle_secs:
                return first
        self._asked_at[deps.account.id] = present
        return await Sight(deps).look(place.channel_id, place.ref)


async def _say_what_it_waits_for(deps: Deps, place: Place) -> NoReturn:
    for waiter in await lookouts.waiters(deps.database):
        if waiter.account_id == deps.account.id:
            raise UserError(f"account {waiter.account_id} {waiter.reason}", remedy=waiter.remedy)
    what = f"{place.title} has been looked through just now; account {deps.account.id} looks at the rest"
    raise BusyError(what, seconds=deps.settings.fleet.busy_retry_secs)


async def _look_at(
    deps: Deps,
    destination: ReadableDestination | Place,
    is_stopping: Callable[[], bool],
    tell: Callable[[str], None],
) -> bool:
    said_at = deps.clock.monotonic()

    def progress(cursor: int, newest: int) -> None:
        nonlocal said_at
        if deps.clock.monotonic() - said_at >= _SECONDS_BETWEEN_WORDS:
            said_at = deps.clock.monotonic()
            tell(
                f"{destination.title} is looked through before anything is published there:"
                f" message {cursor:,} of {newest:,}"
            )

    authority = await authority_in(deps, destination.ref)
    adopting = Adopting(deps, destination.channel_id, authority, _Logged(destination.title))
    return await go_through(adopting, destination.ref, None, progress, is_stopping) is not None


@dataclass(slots=True)
class _Logged:
    """Names in the log what a person might want to look at, as far as anybody would read."""

    title: str
    named: int = 0

    def tell(self, outcome: Outcome, name: str, messages: Sequence[int], why: str) -> None:
        if outcome not in _WANTS_A_PERSON or self.named == MOST_NAMED:
            return
        self.named += 1
        log.warning(
            "message.left_alone",
            channel=self.title,
            messages=list(messages)[:MOST_NAMED],
            name=name,
            reason=f"{outcome.value}: {why}",
            remedy="run: worker verify",
        )
