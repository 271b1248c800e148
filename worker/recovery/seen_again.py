"""Destinations that wait because too much is missing there: looked at again in every round."""

from __future__ import annotations

from typing import TYPE_CHECKING

from worker.domain.disappearance import most_at_once
from worker.errors import NoAccessError
from worker.log import get_logger
from worker.recovery.findings import Kind
from worker.store import missing_packages

if TYPE_CHECKING:
    from worker.pipeline.deps import Deps
    from worker.recovery.findings import Findings
    from worker.recovery.sight import Sight
    from worker.store.withdrawals import ReadableDestination

log = get_logger(__name__)
# Telegram answers at most so many ids at once.
_BATCH = 100


async def look_again(deps: Deps, findings: Findings, sight: Sight) -> None:
    """See whether the packages that hold a destination up are there again.

    Broken off as soon as too many are still missing: usually after the first answer.
    """
    held = await missing_packages.held_channels(deps.database)
    for destination in await sight.destinations() if held else ():
        if destination.channel_id not in held:
            continue
        try:
            await _look_again(deps, findings, destination)
        except NoAccessError as error:
            log.info("destination.not_looked_at", channel=destination.title, reason=error.what)
            await sight.shut_out(destination.channel_id)


async def _look_again(deps: Deps, findings: Findings, destination: ReadableDestination) -> None:
    channel_id = destination.channel_id
    limit = most_at_once(await missing_packages.count_packages(deps.database, channel_id))
    after = still = 0
    while noted := await missing_packages.noted(deps.database, channel_id, after, _BATCH):
        parts = [item.part for item in noted]
        after = parts[-1].package_id
        held = await deps.gateway.look_up(destination.ref, [part.message_id for part in parts])
        there = [part.message_id for part in parts if part.message_id in held]
        await missing_packages.note(deps.database, channel_id, (), there, limit=limit)
        still += len(parts) - len(there)
        if still > limit:
            return
    if await missing_packages.decide(deps.database, channel_id, limit=limit) is None:
        await missing_packages.forget(deps.database, channel_id)
        log.warning("destination.seen_again", channel=destination.title)
        findings.note(Kind.PACKAGE, destination.title, "seen again: it is published to as before")
