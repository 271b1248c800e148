"""The main job from beginning to end, on a world of its own."""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from worker.clock import SystemClock
from worker.config.settings import Settings
from worker.demo.meter import Meter
from worker.demo.proof import Ledger, read_ledger
from worker.demo.stage import CODE, PHONES, Stage, Telegram, build, open_telegram, post_late_part
from worker.fleet.account import Mode
from worker.fleet.governance import open_governance
from worker.fleet.process import open_process, open_sealer, telegram_server
from worker.fleet.scheduler import run_fleet
from worker.fleet.setup import Login, log_in
from worker.log import get_logger
from worker.store import channels
from worker.store.accounts import ready_accounts
from worker.store.catalogue import Found, search_packages
from worker.store.overview import SetOutcome, all_outcomes, count_sets, held_back_sets

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from worker.fleet.process import Process
    from worker.pipeline.deps import Watcher
    from worker.store.database import Database

log = get_logger(__name__)
_DRAIN_SECONDS = 50.0
_SILENT_SECONDS = 5.0
# Telegram's limits, scaled down with the archives.
STANDARD_MIB, PREMIUM_MIB = 2, 4
SEARCH = "parts/lid"


@dataclass(frozen=True, slots=True)
class DemoResult:
    """What the demo did, and the proof."""

    new: int
    # None where the fleet is somebody else's, whose wire nobody here has watched.
    bytes_moved: int | None
    bytes_avoided: int
    seconds: float
    outcomes: list[SetOutcome]
    found: list[Found]
    ledger: Ledger

    @property
    def published(self) -> int:
        return len(self.in_state("indexed", "published"))

    @property
    def duplicates(self) -> int:
        return len(self.in_state("duplicate"))

    @property
    def split_parts(self) -> int:
        """The messages of archives that were too large for one."""
        split = (o for o in self.in_state("indexed", "published") if o.is_split)
        return sum(outcome.message_count or 0 for outcome in split)

    def in_state(self, *states: str) -> list[SetOutcome]:
        """The sets that ended, or wait, this way."""
        return [outcome for outcome in self.outcomes if outcome.state in states]

    @property
    def is_proven(self) -> bool:
        """Whether every archive is at the destination exactly once, and nothing else is."""
        return not (self.ledger.doubled or self.ledger.lost or self.ledger.unexpected)


def demo_settings(folder: Path, telegram: Telegram) -> Settings:
    """Settings that point at the loopback Telegram and look again sooner than real ones would."""
    return Settings.model_validate(
        {
            "data_dir": folder,
            "telegram": {
                "api_id": 1,
                "api_hash": "0" * 32,
                "host": telegram.host,
                "port": telegram.port,
                "public_key": telegram.public_key,
            },
            "transfer": {"standard_limit_mib": STANDARD_MIB, "premium_limit_mib": PREMIUM_MIB},
            # Shorter than the demo lasts: whatever made a set wait, it is tried again before the end.
            "fleet": {"busy_retry_secs": 0.5, "busy_cap_secs": 5, "retry_base_secs": 2, "retry_cap_secs": 10},
            "rate_limits": {"profile": "relaxed"},
        }
    )


async def run_demo(
    folder: Path, database: Database, watcher: Watcher, tell: Callable[[str], None]
) -> DemoResult:
    """Set the stage if it is not set yet, let the fleet work, and ask the ledger.

    ``tell`` hears in words why nothing happens for a while, as after a demo that was killed.
    """
    async with open_telegram(folder / "telegram") as telegram:
        stage = await build(telegram, folder)
        settings = demo_settings(folder, telegram)
        await log_in_all(settings, database, stage)
        before = await all_outcomes(database)
        meter, started = Meter(watcher), time.monotonic()
        async with open_process(settings, database, meter, tell) as process:
            await _work(process)
            if await post_late_part(telegram, stage):
                await _work(process)
        seconds = time.monotonic() - started
        outcomes = await all_outcomes(database)
        return DemoResult(
            new=len(outcomes) - len(before),
            bytes_moved=meter.moved,
            bytes_avoided=max(0, _settled(outcomes) - _settled(before) - meter.moved),
            seconds=seconds,
            outcomes=outcomes,
            found=await search_packages(database, SEARCH, limit=3),
            ledger=await read_ledger(telegram.admin, stage),
        )


def _settled(outcomes: list[SetOutcome]) -> int:
    """The bytes of a tool that fetches and sends every posting."""
    return 2 * sum(o.size for o in outcomes if o.state in ("published", "indexed", "duplicate"))


async def _work(process: Process) -> None:
    started = process.clock.monotonic()
    await run_fleet(process, Mode(once=True))
    # A set that met a busy hash waits half a second; a second look settles it.
    told = ""
    while (await count_sets(process.database)).get("ready"):
        waited = process.clock.monotonic() - started
        if waited > _DRAIN_SECONDS:
            return
        told = await _tell_why(process, told) if waited > _SILENT_SECONDS else told
        await process.clock.sleep(0.5)
        await run_fleet(process, Mode(once=True))


async def _tell_why(process: Process, told: str) -> str:
    """Nobody should watch a demo that stands still without a word; each reason is told once."""
    held = [item for item in await held_back_sets(process.database, limit=1) if item.reason != told]
    for item in held:
        log.warning("demo.waits", archive=item.name, reason=item.reason, seconds=round(item.seconds))
    return held[0].reason if held else told


async def log_in_all(settings: Settings, database: Database, stage: Stage) -> None:
    """Log in the accounts that are not logged in yet, and name the channels."""
    known = {account.phone for account in await ready_accounts(database)}
    server, sealer = telegram_server(settings), open_sealer(settings)

    async def code() -> str:
        return CODE

    missing = [phone for phone in PHONES if phone not in known]
    async with open_governance(database, settings.rate_limits, SystemClock()) as governance:
        login = Login(database, sealer, server, governance, settings.telegram.call_timeout_secs)
        await asyncio.gather(*(log_in(login, phone, ask_code=code, ask_password=code) for phone in missing))
    for source in stage.sources:
        await channels.make_source(database, source)
    await channels.make_destination(database, stage.destination)
