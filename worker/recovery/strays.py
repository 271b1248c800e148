"""Marked messages that no row knows: what is ours and complete becomes a package, anything else is reported.

``Lookout`` does so once before the first publish, above all that is known; ``settle_strays`` because a person
asked, above what was settled so before.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING

from worker.errors import NoAccessError
from worker.log import get_logger
from worker.recovery.adopting import Adopting, Outcome, go_through
from worker.recovery.authority import authority_in
from worker.recovery.findings import Findings, Kind
from worker.recovery.sight import Sight
from worker.store.watermarks import note_recovered, recovered_to

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from worker.pipeline.deps import Deps
    from worker.recovery.account import Extent
    from worker.store.withdrawals import ReadableDestination

log = get_logger(__name__)
_SECONDS_BETWEEN_WORDS = 15.0
# What a log line names; `worker verify` lists the rest.
_MOST_NAMED = 20
_WANTS_A_PERSON = (
    Outcome.DOUBLED,
    Outcome.INCOMPLETE,
    Outcome.NOT_OURS,
    Outcome.OLD,
    Outcome.UNFIT,
)


class Lookout:
    """Looks, once per account of a process, for what the destinations hold beyond all that is known.

    There is something if an older database was restored, or a fresh one begun, and it would be published a
    second time. One account looks, and the others wait for that: nothing is published before it is through.
    """

    def __init__(self) -> None:
        self._lock = asyncio.Lock()
        self._channels: set[int] = set()
        self._accounts: set[int] = set()

    async def look(self, deps: Deps, is_stopping: Callable[[], bool], tell: Callable[[str], None]) -> bool:
        """Whether this account may publish; not if it was told to stop on the way and goes on later."""
        if deps.account.id in self._accounts:
            return True
        async with self._lock:
            for destination in await Sight(deps).destinations():
                if destination.channel_id in self._channels:
                    continue
                try:
                    if not await _look_at(deps, destination, is_stopping, tell):
                        return False
                except NoAccessError:
                    await Sight(deps).shut_out(destination.channel_id)
                    continue
                self._channels.add(destination.channel_id)
        self._accounts.add(deps.account.id)
        return True


async def _look_at(
    deps: Deps,
    destination: ReadableDestination,
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
        if outcome not in _WANTS_A_PERSON or self.named == _MOST_NAMED:
            return
        self.named += 1
        log.warning(
            "message.left_alone",
            channel=self.title,
            messages=list(messages)[:_MOST_NAMED],
            name=name,
            reason=f"{outcome.value}: {why}",
            remedy="run: worker verify",
        )


async def settle_strays(deps: Deps, findings: Findings, extent: Extent, sight: Sight) -> None:
    """Read every destination this account can see and settle what carries a marker and has no row.

    Only above what was settled before, unless all of it is asked for. ``extent.seen.strays`` are the channels
    that another account of this process reads or has read.
    """
    seen = extent.seen.strays
    for destination in await sight.destinations():
        if destination.channel_id in seen:
            continue
        seen.add(destination.channel_id)
        try:
            await _settle(deps, findings, destination, extent)
        except NoAccessError as error:
            seen.remove(destination.channel_id)
            findings.note(Kind.MESSAGE, destination.title, f"not read: {error.what}")
            await sight.shut_out(destination.channel_id)


async def _settle(deps: Deps, findings: Findings, destination: ReadableDestination, extent: Extent) -> None:
    above = 0 if extent.full else await recovered_to(deps.database, destination.channel_id)
    authority = await authority_in(deps, destination.ref)
    noted = _Noted(findings, destination.title)
    adopting = Adopting(deps, destination.channel_id, authority, noted, dry_run=extent.dry_run)
    last = await go_through(
        adopting,
        destination.ref,
        above,
        lambda done, total: extent.progress(f"reading {destination.title}", done, total),
    )
    if last is not None and not extent.dry_run:
        await note_recovered(deps.database, destination.channel_id, adopting.settled_to(last))


@dataclass(frozen=True, slots=True)
class _Noted:
    """Makes findings of what became of messages."""

    findings: Findings
    title: str

    def tell(self, outcome: Outcome, name: str, messages: Sequence[int], why: str) -> None:
        which = f"messages {list(messages)[:_MOST_NAMED]} in {self.title}"
        match outcome:
            case Outcome.DOUBLED:
                why = f"{which}; yours to delete"
            case Outcome.INCOMPLETE | Outcome.NOT_OURS | Outcome.OLD | Outcome.UNFIT:
                why = f"{which}; {why}"
        self.findings.note(Kind.MESSAGE, name, f"{outcome.value}{': ' if why else ''}{why}")
