"""The main job from beginning to end, on a world of its own."""

from __future__ import annotations

import asyncio
import contextlib
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from worker.demo.meter import Meter
from worker.demo.proof import Ledger, read_ledger
from worker.demo.stage import PHONES, Stage, build, post_late_part
from worker.demo.telegram import CODE, forget_telegram, open_telegram
from worker.demo.world import demo_settings, notes_file
from worker.errors import FleetError
from worker.fleet.account import Mode
from worker.fleet.process import open_process
from worker.fleet.scheduler import run_fleet
from worker.fleet.setup import log_in, open_login
from worker.log import get_logger
from worker.plain_text import plain
from worker.store import channels
from worker.store.accounts import ready_accounts
from worker.store.catalogue import Found, search_packages
from worker.store.overview import SetOutcome, all_outcomes, count_sets, held_back_sets

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from worker.config.settings import Settings
    from worker.demo.audience import Audience
    from worker.fleet.process import Process
    from worker.store.database import Database

log = get_logger(__name__)
_DRAIN_SECONDS = 50.0
_SILENT_SECONDS = 5.0
_LOOK_SECONDS = 0.3
_DONE = ("published", "indexed", "duplicate", "failed", "skipped")
SEARCH = "parts/lid"


class DemoStoppedError(FleetError):
    """A person ended the demo before its end; what was under way was finished."""


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

    def require_proof(self, where: str) -> None:
        """Refuse to call it well when the ledger does not."""
        if not self.is_proven:
            raise FleetError("the ledger disagrees", remedy=f"look at {where}, and please report this")


async def run_demo(folder: Path, database: Database, audience: Audience) -> DemoResult:
    """Set the stage if it is not set yet, let the fleet work, and ask the ledger."""
    if not notes_file(folder).exists():
        # A stage that was being set when somebody was killed is no stage.
        forget_telegram(folder)
    audience.act("starting the loopback Telegram")
    with open_telegram(folder) as telegram:
        audience.act("setting the stage")
        stage = await build(telegram, folder)
        settings = demo_settings(folder).settings
        await log_in_all(settings, database, stage)
        before = await all_outcomes(database)
        meter, started = Meter(audience), time.monotonic()
        async with open_process(settings, database, meter, audience.tell) as process:
            async with _followed(process, meter, audience):
                audience.act("fetching and publishing")
                await _work(process)
                if not process.stopping.is_set() and await post_late_part(telegram, stage):
                    audience.act("somebody posts a part that was missing")
                    await _work(process)
            if process.stopping.is_set():
                raise DemoStoppedError("the demo was stopped")
        audience.act("asking the ledger")
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


@contextlib.asynccontextmanager
async def _followed(process: Process, meter: Meter, audience: Audience) -> AsyncIterator[None]:
    """Say how far the whole is, and at once when a person wants it to end."""

    async def count() -> None:
        while True:
            counts = await count_sets(process.database)
            audience.standing(sum(counts.get(state, 0) for state in _DONE), sum(counts.values()), meter.moved)
            await process.clock.sleep(_LOOK_SECONDS)

    async def hear() -> None:
        await process.stopping.wait()
        audience.act("finishing what is under way; Ctrl-C again ends it at once")

    following = [asyncio.create_task(count(), name="count"), asyncio.create_task(hear(), name="hear")]
    try:
        yield
    finally:
        for each in following:
            each.cancel()
        for ended in await asyncio.gather(*following, return_exceptions=True):
            if isinstance(ended, Exception):
                log.warning("demo.not_followed", reason=repr(ended))


def _settled(outcomes: list[SetOutcome]) -> int:
    """The bytes of a tool that fetches and sends every posting."""
    return 2 * sum(o.size for o in outcomes if o.state in ("published", "indexed", "duplicate"))


async def _work(process: Process) -> None:
    started = process.clock.monotonic()
    await run_fleet(process, Mode(once=True))
    # A set that met a busy hash waits half a second; a second look settles it.
    told = ""
    while not process.stopping.is_set() and (await count_sets(process.database)).get("ready"):
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
        process.tell(f"{plain(item.name)} waits {item.seconds:.0f} s: {plain(item.reason)}")
    return held[0].reason if held else told


async def log_in_all(settings: Settings, database: Database, stage: Stage) -> None:
    """Log in the accounts that are not logged in yet, and name the channels."""
    known = {account.phone for account in await ready_accounts(database)}

    async def code() -> str:
        return CODE

    missing = [phone for phone in PHONES if phone not in known]
    async with open_login(settings, database) as login:
        await asyncio.gather(*(log_in(login, phone, ask_code=code, ask_password=code) for phone in missing))
    for source in stage.sources:
        await channels.make_source(database, source)
    await channels.make_destination(database, stage.destination)
