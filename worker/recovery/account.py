"""What one account puts right while it is leased, and how far that goes."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from worker.errors import NoAccessError, NotBeforeError
from worker.recovery.findings import Findings, Kind
from worker.recovery.intents import finish_open_intents
from worker.recovery.left_over import remove_left_overs
from worker.recovery.metadata import complete_pending
from worker.recovery.reconcile import find_above_floor
from worker.recovery.remains import take_back_remains
from worker.recovery.seen_again import look_again
from worker.recovery.sight import Sight
from worker.recovery.strays import settle_strays
from worker.recovery.take_over import take_over_stranded
from worker.recovery.withdrawal import check_packages
from worker.store import open_intents
from worker.store.metadata import pending_of
from worker.store.uploads import load

if TYPE_CHECKING:
    from collections.abc import Callable

    from worker.pipeline.deps import Deps
    from worker.recovery.errand import Errand
    from worker.store.open_intents import Begun

_PENDING_COUNTED = 1000


@dataclass(frozen=True, slots=True)
class Seen:
    """What one account of the process looks at, so that the others need not."""

    packages: set[int] = field(default_factory=set)
    strays: set[int] = field(default_factory=set)
    left_over: set[int] = field(default_factory=set)


def _nobody_looks(step: str, done: int, total: int) -> None:
    """Progress that is not shown."""


@dataclass(frozen=True, slots=True)
class Extent:
    """How far recovery goes: the cheap part of every round, or all of it because a person asked.

    ``full``: the destinations are read from their first message on, whatever was settled before.
    """

    thorough: bool = False
    dry_run: bool = False
    take_over: tuple[int, ...] = ()
    full: bool = False
    accept_missing: bool = False
    seen: Seen = field(default_factory=Seen)
    progress: Callable[[str, int, int], None] = _nobody_looks


async def recover_account(deps: Deps, extent: Extent) -> Findings:
    """Put right what this account can reach; uploads first, because everything else may depend on them."""
    findings, sight = Findings(), Sight(deps, dry_run=extent.dry_run)
    await sight.ask()
    if extent.dry_run:
        await _look_at_uploads(deps, findings, extent, sight)
        await take_back_remains(deps, findings, sight, dry_run=True)
        pending = await pending_of(deps.database, deps.account.id, limit=_PENDING_COUNTED)
        findings.add(Kind.METADATA, "to be completed", len(pending))
    else:
        await take_over_stranded(deps, findings, extent.take_over)
        await finish_open_intents(deps, findings, at_once=extent.thorough)
        await look_again(deps, findings, sight)
        await take_back_remains(deps, findings, sight)
        findings.add(Kind.METADATA, "completed", await complete_pending(deps))
    if extent.thorough:
        await check_packages(
            deps,
            findings,
            extent.seen.packages,
            sight,
            dry_run=extent.dry_run,
            accept=extent.accept_missing,
        )
        await settle_strays(deps, findings, extent, sight)
        await remove_left_overs(deps, findings, extent.seen.left_over, sight, dry_run=extent.dry_run)
    return findings


async def recover_as_asked(errand: Errand) -> dict[str, Any]:
    """The same, for a command whose accounts are all run by workers; beside whatever this one does."""
    asked = errand.arguments
    extent = Extent(
        thorough=True,
        dry_run=bool(asked["dry_run"]),
        take_over=tuple(asked["take_over"]),
        full=bool(asked.get("full")),
        progress=errand.counter.progress,
        accept_missing=bool(asked.get("accept_missing")),
    )
    errand.counter.progress("recovering", 0, 0)
    return (await recover_account(errand.deps, extent)).document()


async def _look_at_uploads(deps: Deps, findings: Findings, extent: Extent, sight: Sight) -> None:
    for begun in await open_intents.begun_by(deps.database, deps.account.id, at_once=True, claimed=True):
        findings.note(Kind.UPLOAD, begun.set_name, f"to be finished: {await _standing(deps, begun)}")
    stranded = await open_intents.stranded_for(
        deps.database, deps.account.id, extent.take_over, whole=sight.whole
    )
    for begun in stranded:
        what = f"to be taken over: from account {begun.account_id}, {await _standing(deps, begun)}"
        findings.note(Kind.UPLOAD, begun.set_name, what)


async def _standing(deps: Deps, begun: Begun) -> str:
    async with deps.database.reading() as connection:
        intent = await load(connection, begun.upload_id)
    known = f"{begun.sent_count} of {begun.part_count} parts recorded"
    try:
        unrecorded = [found async for found in find_above_floor(deps, intent)]
    except (NoAccessError, NotBeforeError) as error:
        return f"{known}, and no more can be seen: {error.what}"
    return f"{known}, {len(unrecorded)} more are there" if unrecorded else known
