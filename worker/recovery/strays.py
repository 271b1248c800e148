"""Marked messages that no row knows: what is ours and complete becomes a package, anything else is reported.

Because a person asked, above what was settled so before. Before anything is published, ``lookout`` does so.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from worker.errors import NoAccessError
from worker.recovery.adopting import MOST_NAMED, Adopting, Outcome, go_through
from worker.recovery.authority import authority_in
from worker.recovery.findings import Findings, Kind
from worker.store.watermarks import note_recovered, recovered_to

if TYPE_CHECKING:
    from collections.abc import Sequence

    from worker.pipeline.deps import Deps
    from worker.recovery.account import Extent
    from worker.recovery.sight import Sight
    from worker.store.withdrawals import ReadableDestination


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
        which = f"messages {list(messages)[:MOST_NAMED]} in {self.title}"
        match outcome:
            case Outcome.DOUBLED:
                why = f"{which}; yours to delete"
            case Outcome.INCOMPLETE | Outcome.NOT_OURS | Outcome.OLD | Outcome.UNFIT:
                why = f"{which}; {why}"
        self.findings.note(Kind.MESSAGE, name, f"{outcome.value}{': ' if why else ''}{why}")
