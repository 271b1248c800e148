"""One account's reading: every source it can see, page by page, and the proof of what was found."""

from __future__ import annotations

from typing import TYPE_CHECKING

from worker.domain.pauses import in_the_way, resting_channels
from worker.errors import AccountUnusableError, FenceLostError, FleetError, LeaseLostError
from worker.flow.gap import Gap
from worker.log import get_logger
from worker.pipeline.prove import prove_some
from worker.pipeline.scan import scan_page
from worker.store import channels
from worker.store.source_files import sort_earlier

if TYPE_CHECKING:
    from worker.fleet.process import Process
    from worker.pipeline.deps import Deps
    from worker.store.channels import Source

log = get_logger(__name__)


async def scan_all(process: Process, deps: Deps) -> None:
    """Read every source upward, and ask the bytes of each set that looks complete."""
    await _prove_all(process, deps)
    between_channels = Gap(_delay(deps, deps.settings.rate_limits.inter_job_delay_ms), deps.clock)
    for source in await channels.sources_of(deps.database, deps.account.id):
        async with between_channels:
            try:
                await sort_earlier(deps.database, source.channel_id)
                await _scan(process, deps, source)
            except FenceLostError as error:
                # Another account reads the same channel: its pages are as good as ours.
                log.info("scan.shared", reason=str(error))
            except (LeaseLostError, AccountUnusableError):
                raise
            except FleetError as error:
                log.warning("scan.failed", channel=source.title, reason=str(error))
            except Exception:
                log.exception("scan.broke", channel=source.title)
        await _prove_all(process, deps)


async def _scan(process: Process, deps: Deps, source: Source) -> None:
    between_pages = Gap(_delay(deps, deps.settings.rate_limits.inter_batch_delay_ms), deps.clock)
    cursor: Source | None = source
    while cursor is not None and not process.stopping.is_set():
        pauses = await process.pauses.pauses()
        if in_the_way(pauses, deps.account.id, source.channel_id) is not None:
            return
        async with between_pages:
            cursor = await scan_page(deps, cursor)


async def _prove_all(process: Process, deps: Deps) -> None:
    """Prove what waits for it, until there is nothing more for this account or something is in the way."""
    while not process.stopping.is_set():
        pauses = await process.pauses.pauses()
        if in_the_way(pauses, deps.account.id, None) is not None:
            return
        if not await prove_some(deps, resting_channels(pauses, deps.account.id)):
            return


def _delay(deps: Deps, milliseconds: int) -> float:
    return 0.0 if deps.settings.rate_limits.profile == "relaxed" else milliseconds / 1000
