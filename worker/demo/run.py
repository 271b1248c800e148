"""The main job from beginning to end, on a world of its own."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from worker.clock import SystemClock
from worker.config.secret_key import secret_key
from worker.config.settings import Settings
from worker.demo.proof import Ledger, read_ledger
from worker.demo.stage import CODE, PHONES, Stage, Telegram, build, open_telegram
from worker.fleet.account import Mode
from worker.fleet.governance import open_governance
from worker.fleet.process import open_process, telegram_server
from worker.fleet.scheduler import run_fleet
from worker.fleet.setup import Login, log_in
from worker.store import channels
from worker.store.accounts import ready_accounts
from worker.store.overview import SetOutcome, all_outcomes, count_sets, published_bytes
from worker.store.sealing import Sealer

if TYPE_CHECKING:
    from pathlib import Path

    from worker.pipeline.deps import Watcher
    from worker.store.database import Database

_DRAIN_SECONDS = 50.0


@dataclass(frozen=True, slots=True)
class DemoResult:
    """What the demo did, and the proof."""

    seen: int
    published: int
    duplicates: int
    new: int
    bytes: int
    seconds: float
    outcomes: list[SetOutcome]
    ledger: Ledger

    @property
    def is_proven(self) -> bool:
        """Whether every archive is at the destination exactly once."""
        return not self.ledger.doubled and not self.ledger.lost


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
            "fleet": {"busy_retry_secs": 0.5},
            "rate_limits": {"profile": "relaxed"},
        }
    )


async def run_demo(folder: Path, database: Database, watcher: Watcher) -> DemoResult:
    """Set the stage if it is not set yet, let the fleet work, and ask the ledger."""
    async with open_telegram(folder / "telegram") as telegram:
        stage = await build(telegram, folder)
        settings = demo_settings(folder, telegram)
        await _log_in_all(settings, database, stage)
        before = await count_sets(database)
        started = time.monotonic()
        async with open_process(settings, database, watcher) as process:
            await run_fleet(process, Mode(once=True))
            # A set that met a busy hash waits half a second; a second look settles it.
            while (await count_sets(database)).get("ready") and time.monotonic() - started < _DRAIN_SECONDS:
                await process.clock.sleep(0.5)
                await run_fleet(process, Mode(once=True))
        seconds = time.monotonic() - started
        counts = await count_sets(database)
        return DemoResult(
            seen=sum(counts.values()),
            published=counts.get("indexed", 0) + counts.get("published", 0),
            duplicates=counts.get("duplicate", 0),
            new=sum(counts.values()) - sum(before.values()),
            bytes=await published_bytes(database),
            seconds=seconds,
            outcomes=await all_outcomes(database),
            ledger=await read_ledger(telegram.admin, stage),
        )


async def _log_in_all(settings: Settings, database: Database, stage: Stage) -> None:
    known = {account.phone for account in await ready_accounts(database)}
    server, sealer = telegram_server(settings), Sealer(secret_key(settings))

    async def code() -> str:
        return CODE

    missing = [phone for phone in PHONES if phone not in known]
    async with open_governance(database, settings.rate_limits, SystemClock()) as governance:
        login = Login(database, sealer, server, governance, settings.telegram.call_timeout_secs)
        for phone in missing:
            await log_in(login, phone, ask_code=code, ask_password=code)
    for source in stage.sources:
        await channels.make_source(database, source)
    await channels.make_destination(database, stage.destination)
