"""Packages compared with the destination: which of their messages are gone, and which cannot be judged.

A message is gone when the account that reads another one in the same answer gets an empty one in its place.
An account that reads nothing there proves nothing: it may have been shut out. Much that is gone at once
proves too much: a history was cleared, or the channel has dropped what is oldest; a person has to say which.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from worker.domain.disappearance import most_at_once
from worker.errors import BusyError, NoAccessError
from worker.log import get_logger
from worker.pipeline.deduplicate import only_publisher
from worker.recovery.findings import Kind
from worker.recovery.remains import take_back
from worker.store import missing_packages, withdrawals
from worker.store.missing_packages import HeldDestination, Missing
from worker.store.remains import Remains

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from worker.domain.telegram import Message
    from worker.pipeline.deps import Deps
    from worker.recovery.findings import Findings
    from worker.recovery.sight import Sight
    from worker.store.withdrawals import PublishedPart, ReadableDestination

log = get_logger(__name__)
# Telegram answers at most 100 ids at once; two of them are witnesses.
_BATCH = 98
_OLDEST = 1
# A dry run lists no more than anybody reads.
_FORETOLD = 100


@dataclass(frozen=True, slots=True)
class Judged:
    """What one answer says about the messages it was asked for."""

    standing: tuple[PublishedPart, ...]
    gone: tuple[PublishedPart, ...]
    changed: tuple[PublishedPart, ...]
    undecided: tuple[PublishedPart, ...]


def judge(parts: Sequence[PublishedPart], held: Mapping[int, Message | None]) -> Judged:
    """Tell gone from standing. With nothing read in the same answer, nothing is known to be gone."""
    absent = tuple(part for part in parts if part.message_id not in held)
    present = [part for part in parts if part.message_id in held]
    changed = tuple(part for part in present if not _carries(part, held[part.message_id]))
    standing = tuple(part for part in present if part not in changed)
    return Judged(standing, absent, changed, ()) if held else Judged(standing, (), changed, absent)


def _carries(part: PublishedPart, message: Message | None) -> bool:
    document = message.document if message is not None else None
    return document is not None and part.document_id in (None, document.document_id)


async def check_packages(
    deps: Deps, findings: Findings, seen: set[int], sight: Sight, *, dry_run: bool, accept: bool = False
) -> None:
    """Look at every message of every published package that this account can see, 100 at a time.

    ``seen`` are the channels that another account of this process looks at or has looked at. ``accept``: a
    person says that what is missing is gone, however much it is.
    """
    for destination in await sight.destinations():
        if destination.channel_id in seen:
            continue
        seen.add(destination.channel_id)
        try:
            await _Pass(deps, findings, destination, sight, dry_run=dry_run, accept=accept).run()
        except NoAccessError as error:
            seen.remove(destination.channel_id)
            findings.note(Kind.PACKAGE, destination.title, f"not judged: {error.what}")
            await sight.shut_out(destination.channel_id)


class _Pass:
    """One look at everything that lies in a destination, and what follows from what is missing."""

    def __init__(
        self,
        deps: Deps,
        findings: Findings,
        destination: ReadableDestination,
        sight: Sight,
        *,
        dry_run: bool,
        accept: bool,
    ) -> None:
        self._deps = deps
        self._findings = findings
        self._destination = destination
        self._sight = sight
        self._dry_run = dry_run
        self._accept = accept
        self._channel_id = destination.channel_id
        self._limit = 0
        self._newest = 0
        # What a dry run keeps to itself: how much is missing, and as much of it as would be withdrawn.
        self._missed = 0
        self._last_missed = 0
        self._few: list[PublishedPart] = []

    async def run(self) -> None:
        database, channel_id = self._deps.database, self._channel_id
        self._limit = most_at_once(await missing_packages.count_packages(database, channel_id))
        self._newest = await self._deps.gateway.newest_message_id(self._destination.ref)
        is_noted = await missing_packages.any_noted(database, channel_id)
        last: PublishedPart | None = None
        while parts := await withdrawals.parts_after(database, channel_id, last, _BATCH):
            last = parts[-1]
            wanted = {part.message_id for part in parts} | {self._newest, _OLDEST}
            judged = judge(parts, await self._deps.gateway.look_up(self._destination.ref, sorted(wanted)))
            self._report(judged)
            missing = [
                *(Missing(part, is_gone=True) for part in judged.gone),
                *(Missing(part, is_gone=False) for part in judged.undecided),
            ]
            if missing and await self._sight.look(channel_id, self._destination.ref):
                what = "not judged: not all of its history is shown"
                self._findings.note(Kind.PACKAGE, self._destination.title, what)
                return
            if missing or is_noted:
                await self._take(missing, (*judged.standing, *judged.changed))
                is_noted = True
        if self._dry_run:
            await self._foretell()
        elif is_noted:
            await self._decide()

    def _report(self, judged: Judged) -> None:
        self._findings.add(Kind.PACKAGE, "messages standing", len(judged.standing))
        for part in judged.changed:
            self._findings.note(Kind.PACKAGE, part.name, f"changed by hand: message {part.message_id}")
        for part in judged.undecided:
            self._findings.note(Kind.PACKAGE, part.name, "not judged: nothing could be read beside it")

    async def _take(self, missing: Sequence[Missing], standing: Sequence[PublishedPart]) -> None:
        if not self._dry_run:
            there = [part.message_id for part in standing]
            await missing_packages.note(
                self._deps.database, self._channel_id, missing, there, limit=self._limit
            )
            return
        for item in missing:
            # The parts of a package follow one another.
            if item.part.package_id != self._last_missed:
                self._missed += 1
                self._last_missed = item.part.package_id
                if item.is_gone or self._accept:
                    self._few.append(item.part)
        del self._few[_FORETOLD:]

    async def _foretell(self) -> None:
        if self._missed > self._limit and not self._accept:
            count = await missing_packages.count_packages(self._deps.database, self._channel_id)
            self._hold(HeldDestination(self._destination.title, self._missed, count))
            return
        for part in self._few:
            what = f"to be withdrawn: message {part.message_id} is gone"
            self._findings.note(Kind.PACKAGE, part.name, what)

    def _hold(self, held: HeldDestination) -> None:
        what = f"needs you: {held.reason} — {held.remedy}"
        self._findings.note(Kind.PACKAGE, self._destination.title, what)

    async def _decide(self) -> None:
        database, channel_id = self._deps.database, self._channel_id
        held = await missing_packages.decide(database, channel_id, limit=self._limit)
        if held is not None and not self._accept:
            log.warning("destination.held", channel=held.title, missing=held.missing, packages=held.packages)
            self._hold(held)
            return
        after = 0
        while noted := await missing_packages.noted(database, channel_id, after, _BATCH):
            after = noted[-1].part.package_id
            for item in noted:
                if item.is_gone or self._accept:
                    await self._withdraw(item.part)
        if self._accept:
            await missing_packages.accept(database, channel_id)
        else:
            await missing_packages.forget(database, channel_id)

    async def _is_still_gone(self, part: PublishedPart) -> bool:
        """A second answer, since what stands of the package is deleted on the strength of it."""
        ids = sorted({part.message_id, self._newest, _OLDEST})
        held = await self._deps.gateway.look_up(self._destination.ref, ids)
        return bool(held) and part.message_id not in held

    async def _withdraw(self, part: PublishedPart) -> None:
        deps, findings = self._deps, self._findings
        remains = Remains(part.package_id, part.content_hash, part.name, self._channel_id)
        try:
            async with only_publisher(deps, part.content_hash):
                if not self._accept and not await self._is_still_gone(part):
                    findings.note(Kind.PACKAGE, part.name, f"seen again: message {part.message_id}")
                    return
                republish = deps.settings.fleet.republish_deleted
                withdrawn = await withdrawals.withdraw(
                    *(deps.database, deps.account.id, self._channel_id, part),
                    republish=republish,
                    accepted=self._accept,
                )
                if withdrawn is None:
                    return
                log.warning("package.withdrawn", package=part.package_id, message=part.message_id)
                findings.note(Kind.PACKAGE, part.name, f"withdrawn: message {part.message_id} is gone")
                if withdrawn.unrecorded:
                    what = (
                        f"left: {withdrawn.unrecorded} messages that no upload here has sent; yours to delete"
                    )
                    findings.note(Kind.MESSAGE, part.name, what)
                if withdrawn.has_remains:
                    await take_back(deps, findings, remains)
        except BusyError as error:
            findings.note(Kind.PACKAGE, part.name, f"looked at later: {error.what}")
