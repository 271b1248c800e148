"""Packages compared with the destination: which of their messages are gone, and which cannot be judged.

A message is gone when the account that reads another one in the same answer gets an empty one in its place.
An account that reads nothing there proves nothing: it may have been shut out.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from worker.errors import BusyError, NoAccessError
from worker.log import get_logger
from worker.pipeline.deduplicate import only_publisher
from worker.recovery.findings import Kind
from worker.store import withdrawals

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
    deps: Deps, findings: Findings, seen: set[int], sight: Sight, *, dry_run: bool
) -> None:
    """Look at every message of every published package that this account can see, 100 at a time.

    ``seen`` are the channels that another account of this process looks at or has looked at.
    """
    for destination in await sight.destinations():
        if destination.channel_id in seen:
            continue
        seen.add(destination.channel_id)
        try:
            await _check(deps, findings, destination, sight, dry_run=dry_run)
        except NoAccessError as error:
            seen.remove(destination.channel_id)
            findings.note(Kind.PACKAGE, destination.title, f"not judged: {error.what}")
            await sight.shut_out(destination.channel_id)


async def _check(
    deps: Deps, findings: Findings, destination: ReadableDestination, sight: Sight, *, dry_run: bool
) -> None:
    newest = await deps.gateway.newest_message_id(destination.ref)
    last: PublishedPart | None = None
    while parts := await withdrawals.parts_after(deps.database, destination.channel_id, last, _BATCH):
        last = parts[-1]
        wanted = {part.message_id for part in parts} | {newest, _OLDEST}
        judged = judge(parts, await deps.gateway.look_up(destination.ref, sorted(wanted)))
        findings.add(Kind.PACKAGE, "messages standing", len(judged.standing))
        for part in judged.changed:
            findings.note(Kind.PACKAGE, part.name, f"changed by hand: message {part.message_id}")
        for part in judged.undecided:
            findings.note(Kind.PACKAGE, part.name, "not judged: nothing could be read beside it")
        if judged.gone and await sight.look(destination.channel_id, destination.ref):
            findings.note(Kind.PACKAGE, destination.title, "not judged: not all of its history is shown")
            return
        for part in {part.package_id: part for part in judged.gone}.values():
            await _withdraw(deps, findings, part, dry_run=dry_run)


async def _withdraw(deps: Deps, findings: Findings, part: PublishedPart, *, dry_run: bool) -> None:
    if dry_run:
        findings.note(Kind.PACKAGE, part.name, f"to be withdrawn: message {part.message_id} is gone")
        return
    try:
        async with only_publisher(deps, part.content_hash):
            republish = deps.settings.fleet.republish_deleted
            withdrawn = await withdrawals.withdraw(deps.database, part, republish=republish)
    except BusyError as error:
        findings.note(Kind.PACKAGE, part.name, f"looked at later: {error.what}")
        return
    if withdrawn:
        log.warning("package.withdrawn", package=part.package_id, message=part.message_id)
        findings.note(Kind.PACKAGE, part.name, f"withdrawn: message {part.message_id} is gone")
