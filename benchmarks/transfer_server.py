"""The loopback Telegram that transfers are measured on, and the files that lie there."""

import contextlib
import hashlib
import itertools
import json
import os
import shutil
import sqlite3
import subprocess
import sys
from pathlib import Path
from typing import Any

import psutil
from cryptography.hazmat.primitives import serialization
from transfer_clients import HOME, ROOT
from transfer_report import Line

from worker.sandbox.admin_client import SandboxAdmin
from worker.sandbox.ledger.blobs import STRIDE
from worker.sandbox.public_key import fingerprint

MIB = 1 << 20
CODE = "12345"


class Server:
    """The loopback Telegram with one channel, a file of each size in it, and an account per client."""

    def __init__(self, line: Line) -> None:
        self._state = HOME / "telegram"
        shutil.rmtree(self._state, ignore_errors=True)
        command = [sys.executable, "-m", "worker.sandbox", "--json", "--state", str(self._state)]
        # Pyrogram 2.0.106 does not know the ids that channels have today.
        command += [
            "--first-channel-id",
            "1000000001",
            "--rtt-ms",
            str(line.rtt_ms),
            "--mbps",
            str(line.mbps),
        ]
        self._process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)
        assert self._process.stdout is not None
        self.facts: dict[str, Any] = json.loads(self._process.stdout.readline())
        self._times = psutil.Process(self._process.pid)
        self.admin = SandboxAdmin.announced(self.facts)
        self._channel_id = 0
        self._kept: set[str] = set()

    async def arrange(self, sizes: list[int]) -> list[dict[str, Any]]:
        """Post a file of each client's size; what each client has to know."""
        phones = [f"+1000000{number:04d}" for number in range(len(sizes))]
        for phone in phones:
            await self.admin.create_account(phone, "Bench", premium=True)
        self._channel_id = (await self.admin.create_channel("Archives", admins=phones))["channel_id"]
        posted = {
            size: await self.admin.post_document(self._channel_id, _file_of(size), "archive.zip")
            for size in set(sizes)
        }
        self._kept = {str(each["document_id"]) for each in posted.values()}
        common = {
            **self.facts,
            "channel_id": self._channel_id,
            "code": CODE,
            "fingerprint": _fingerprint(Path(self.facts["public_key"])),
        }
        return [
            {**common, **posted[size], "file": str(_file_of(size)), "size": size, "phone": phone}
            for size, phone in zip(sizes, phones, strict=True)
        ]

    def cpu(self) -> float:
        times = self._times.cpu_times()
        return float(times.user + times.system)

    def received(self, operation: str) -> str | None:
        """The SHA-256 of what was sent here since uploads were last forgotten; None if nothing was to be."""
        if operation == "publish":
            return str(self.admin.do_now("messages", channel_id=self._channel_id)[-1]["sha256"])
        return self._uploaded() if operation == "up" else None

    def _uploaded(self) -> str:
        """No message was made of it, so it lies there in parts."""
        (path,) = self._state.glob("uploads/*")
        upload = [int(number) for number in path.name.split("-", 1)]
        ledger = sqlite3.connect(f"file:{self._state / 'ledger.sqlite'}?mode=ro", uri=True)
        with contextlib.closing(ledger), path.open("rb") as file:
            digest = hashlib.sha256()
            query = "SELECT part, size FROM upload_parts WHERE user_id = ? AND file_id = ? ORDER BY part"
            for part, size in ledger.execute(query, upload):
                file.seek(part * STRIDE)
                digest.update(file.read(size))
        return digest.hexdigest()

    def forget_uploads(self) -> None:
        """What was uploaded is not read again, and there is a lot of it."""
        for path in itertools.chain(self._state.glob("uploads/*"), self._state.glob("documents/*")):
            if path.name not in self._kept:
                path.unlink()

    def close(self) -> None:
        self._process.terminate()
        self._process.wait()
        shutil.rmtree(self._state, ignore_errors=True)


def _fingerprint(pem: Path) -> int:
    numbers = serialization.load_pem_public_key(pem.read_bytes()).public_numbers()
    return fingerprint(numbers.n, numbers.e)


def _file_of(size: int) -> Path:
    path = HOME / f"archive-{size // MIB}.zip"
    if not path.exists() or path.stat().st_size != size:
        with path.open("wb") as file:
            for _ in range(size // MIB):
                file.write(os.urandom(MIB))
    return path


def sha256_of(size: int) -> str:
    with _file_of(size).open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
