"""Accounts that are logged in and channels that are chosen: made once per test process, copied for every world."""

import asyncio
import contextlib
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from database_rows import Rows, read_rows, write_rows
from loopback_telegram import Telegram

from worker.config.settings import Settings
from worker.fleet.setup import log_in, open_login
from worker.sandbox.admin_client import SandboxAdmin
from worker.store import channels
from worker.store.database import Database
from worker.store.sealing import Sealer


@dataclass(frozen=True, slots=True)
class Chosen:
    """The channels to read and the one to publish to."""

    sources: tuple[int, ...]
    destination: int


@dataclass(frozen=True, slots=True)
class _Kept:
    chosen: Chosen
    telegram: Path
    rows: Rows


_kept: dict[tuple[str, ...], _Kept] = {}


async def settle(telegram: Path, database_url: str, phones: Sequence[str]) -> Chosen:
    """Some accounts, two sources that all can read, one destination that all can write to.

    ``telegram`` is the folder of a loopback Telegram that does not run, and holds all that afterwards.
    """
    kept = _kept.get(tuple(phones))
    if kept is not None:
        await asyncio.to_thread(shutil.copytree, kept.telegram, telegram)
        await write_rows(database_url, kept.rows)
        return kept.chosen
    with contextlib.closing(Telegram(telegram)) as running:
        chosen = await _populate(SandboxAdmin.announced(running.facts), phones)
        await log_in_to(running.facts, database_url, chosen, phones)
    _kept[tuple(phones)] = _Kept(chosen, _keep(telegram), await read_rows(database_url))
    return chosen


async def _populate(admin: SandboxAdmin, phones: Sequence[str]) -> Chosen:
    for phone in phones:
        await admin.create_account(phone, "Ada")
    made = [await admin.create_channel(title, members=list(phones)) for title in ("First", "Second")]
    library = await admin.create_channel("Library", admins=list(phones))
    return Chosen(tuple(channel["channel_id"] for channel in made), library["channel_id"])


def _keep(telegram: Path) -> Path:
    """Beside the first world, where pytest clears it away with everything else."""
    # Each copy listens on ports of its own.
    ports = shutil.ignore_patterns("*.port")
    return shutil.copytree(telegram, telegram.with_name("settled"), ignore=ports)


async def log_in_to(facts: dict, database_url: str, chosen: Chosen, phones: Sequence[str]) -> None:
    """Log these accounts in on the database, and choose its channels."""
    settings = Settings.model_validate(
        {
            "telegram": {
                "api_id": 1,
                "api_hash": "0" * 32,
                "host": facts["host"],
                "port": facts["port"],
                "public_key": facts["public_key"],
            },
            "rate_limits": {"profile": "relaxed"},
        }
    )
    database = Database(database_url)

    async def code() -> str:
        return "12345"

    async with open_login(settings, database, sealer=Sealer(bytes(32))) as login:
        for phone in phones:
            await log_in(login, phone, ask_code=code, ask_password=code)
        for source in chosen.sources:
            await channels.make_source(database, source)
        await channels.make_destination(database, chosen.destination)
    await database.close()
