"""The demo where fleet, database and loopback Telegram run by themselves, as in containers."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from worker.clock import SystemClock
from worker.demo.proof import read_ledger
from worker.demo.run import SEARCH, DemoResult, log_in_all
from worker.demo.stage import Stage, build, post_late_part
from worker.demo.telegram import Telegram
from worker.demo.world import notes_file
from worker.errors import FleetError, UserError
from worker.sandbox.admin_client import TOKEN_FILE, SandboxAdmin
from worker.store.catalogue import search_packages
from worker.store.overview import SetOutcome, all_outcomes, scanned_sources, waiting_sets

if TYPE_CHECKING:
    from worker.config.settings import Settings
    from worker.store.database import Database

_LOOK_SECONDS = 1.0
_SETTLED = {"indexed", "duplicate", "skipped", "failed"}


async def set_stage(settings: Settings, database: Database, admin_port: int) -> Stage:
    """Post everything, log the accounts in, and name sources and destination; what is there already stays."""
    telegram = _telegram(settings, admin_port)
    begun = settings.data_dir / "stage.begun"
    if begun.exists() and not notes_file(settings.data_dir).exists():
        raise UserError(
            "the stage was begun here before and not finished",
            remedy="start anew with an empty loopback Telegram: docker compose … down --volumes",
        )
    settings.data_dir.mkdir(parents=True, exist_ok=True)
    begun.touch()
    stage = await build(telegram, settings.data_dir)
    await log_in_all(settings, database, stage)
    return stage


async def watch(settings: Settings, database: Database, admin_port: int, limit: float) -> DemoResult:
    """Wait until the fleet has dealt with everything, a late part included, and ask the ledger."""
    telegram, clock = _telegram(settings, admin_port), SystemClock()
    stage = await build(telegram, settings.data_dir)
    started = clock.monotonic()
    try:
        async with asyncio.timeout(limit) as deadline:
            while not await _is_settled(database, waiting=2) and not await _is_settled(database, waiting=1):
                await clock.sleep(_LOOK_SECONDS)
            await post_late_part(telegram, stage)
            while not await _is_settled(database, waiting=1):
                await clock.sleep(_LOOK_SECONDS)
    except TimeoutError:
        if not deadline.expired():
            raise
        waits = "; ".join(f"{item.name}: {item.reason}" for item in await waiting_sets(database, limit=3))
        raise FleetError(
            f"the fleet is not done after {limit:.0f} s ({waits})", remedy="worker status"
        ) from None
    outcomes = await all_outcomes(database)
    return DemoResult(
        new=len(outcomes),
        bytes_moved=None,
        bytes_avoided=sum(outcome.size for outcome in outcomes if outcome.state == "duplicate"),
        seconds=clock.monotonic() - started,
        outcomes=outcomes,
        found=await search_packages(database, SEARCH, limit=3),
        ledger=await read_ledger(telegram.admin, stage),
    )


async def _is_settled(database: Database, *, waiting: int) -> bool:
    """Whether every source was read to its end, and every set but this many has found its end."""
    scanned = await scanned_sources(database)
    if not scanned.of_channels or scanned.channels < scanned.of_channels:
        return False
    outcomes = await all_outcomes(database)
    open_ends = [outcome for outcome in outcomes if outcome.state not in _SETTLED]
    return len(open_ends) == waiting and all(_waits_for_a_part(outcome) for outcome in open_ends)


def _waits_for_a_part(outcome: SetOutcome) -> bool:
    return outcome.state == "collecting"


def _telegram(settings: Settings, admin_port: int) -> Telegram:
    telegram = settings.telegram
    if telegram.host is None or telegram.public_key is None:
        raise UserError(
            "the demo needs a loopback Telegram, and none is configured",
            remedy="set WORKER_TELEGRAM__HOST, __PORT and __PUBLIC_KEY as `worker sandbox` prints them",
        )
    # The token lies where the key does.
    admin = SandboxAdmin(telegram.host, admin_port, telegram.public_key.with_name(TOKEN_FILE))
    return Telegram(telegram.host, telegram.port, telegram.public_key, admin)
