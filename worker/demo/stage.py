"""The demo's world: a loopback Telegram in a process of its own, two accounts, channels, archives."""

from __future__ import annotations

import asyncio
import contextlib
import json
import random
import sys
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from worker.errors import UserError
from worker.sandbox.admin_client import SandboxAdmin

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

PHONES = {"+10000000001": "Ada", "+10000000002": "Grace"}
PREMIUM = "+10000000001"
CODE = "12345"
ARCHIVES = 10
_SHARED = range(3, 7)
_START_SECONDS = 20.0


@dataclass(frozen=True, slots=True)
class Telegram:
    """Where the loopback Telegram listens."""

    host: str
    port: int
    public_key: Path
    admin: SandboxAdmin


@dataclass(frozen=True, slots=True)
class Stage:
    """The channels of the demo, by their Telegram ids."""

    sources: tuple[int, ...]
    destination: int


@contextlib.asynccontextmanager
async def open_telegram(state: Path) -> AsyncIterator[Telegram]:
    """A sandbox process for the length of the block, on the state it had before."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "worker.sandbox", "--json", "--code", CODE, "--state", str(state)),
        stdout=asyncio.subprocess.PIPE,
    )
    try:
        assert process.stdout is not None
        async with asyncio.timeout(_START_SECONDS):
            line = await process.stdout.readline()
        if not line:
            raise UserError("the loopback Telegram did not start", remedy="run: worker sandbox")
        facts = json.loads(line)
        admin = SandboxAdmin(facts["host"], facts["admin_port"])
        yield Telegram(facts["host"], facts["port"], Path(facts["public_key"]), admin)
    finally:
        if process.returncode is None:
            process.terminate()
        await process.wait()


async def build(telegram: Telegram, folder: Path) -> Stage:
    """Make accounts, channels and postings; the same ones are found again when the demo runs again."""
    notes = folder / "stage.json"
    if notes.exists():
        known = json.loads(notes.read_text(encoding="utf-8"))
        return Stage(tuple(known["sources"]), known["destination"])
    admin = telegram.admin
    for phone, name in PHONES.items():
        await admin.create_account(phone, name, premium=phone == PREMIUM)
    phones = list(PHONES)
    first = await _channel(admin, "Model Archive", members=phones)
    second = await _channel(admin, "Print Vault", members=phones)
    destination = await _channel(admin, "Library", admins=phones)
    files = [make_archive(folder / "archives", number) for number in range(ARCHIVES)]
    for number, file in enumerate(files):
        if number < _SHARED.stop:
            await admin.post_document(first, file, file.name, caption=f"#{number + 1} of the collection")
        if number >= _SHARED.start:
            await admin.post_document(second, file, file.name)
        await admin.post_text(first, "Enjoy!")
    notes.write_text(json.dumps({"sources": [first, second], "destination": destination}), encoding="utf-8")
    return Stage((first, second), destination)


async def _channel(admin: SandboxAdmin, title: str, **people: Any) -> int:
    return int((await admin.create_channel(title, **people))["channel_id"])


def make_archive(folder: Path, number: int) -> Path:
    """A small zip with a readme and incompressible data; the same number always makes the same bytes."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"Workshop - Kit {number + 1:02d}.zip"
    noise = random.Random(number)  # noqa: S311 - sample data
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name in ("readme.txt", "parts/base.stl", "parts/lid.stl"):
            entry = zipfile.ZipInfo(name, (2026, 1, 1 + number, 12, 0, 0))
            size = 400 if name.endswith("txt") else 100_000 * (1 + number)
            archive.writestr(entry, noise.randbytes(size))
    return path
