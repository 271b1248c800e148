"""How fast archives come through, and what that takes of memory and disk.

    python benchmarks/ingest.py [--archives 40] [--mib 10]

Posts archives in a channel of the loopback Telegram, 50 ms away and with 20 MB/s each way per account, and
lets worker processes ingest them: one account one set after the other, one account that fetches the next set
while it publishes the last, and two accounts. Exits 1 unless fetching and publishing at once takes at most
0.67 of one after the other, two accounts take at most 0.6 of one, no worker's memory reaches 250 MiB, and the
workspace never holds more than the sets in flight. Paces are relaxed: they would measure Telegram's patience.
"""

import argparse
import asyncio
import contextlib
import os
import shutil
import subprocess
import sys
import tempfile
import time
import zipfile
from dataclasses import dataclass
from pathlib import Path

import asyncpg
import psutil

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from worker.clock import SystemClock
from worker.config.settings import FleetSettings, Settings
from worker.demo.telegram import CODE, Telegram, open_telegram
from worker.fleet.governance import open_governance
from worker.fleet.process import telegram_server
from worker.fleet.setup import Login, log_in
from worker.store import channels, migrations
from worker.store.database import Database
from worker.store.embedded import open_cluster
from worker.store.sealing import Sealer

ROOT = Path(__file__).resolve().parents[1]
MIB = 1024 * 1024
PHONES = ("+10000000001", "+10000000002")
SECRET_KEY = "A" * 43 + "="
RTT_MS, ACCOUNT_MBPS = 50, 160
OVERLAPPED_PROMISED, TWO_PROMISED, MEMORY_PROMISED = 0.67, 0.6, 250 * MIB
IN_FLIGHT = FleetSettings().sets_in_flight


@dataclass(frozen=True)
class Cost:
    """Seconds from the first lease to the last message, and the most memory and disk in between."""

    seconds: float
    memory: int
    disk: int

    def __str__(self) -> str:
        memory, disk = self.memory / MIB, self.disk / MIB
        return f"{self.seconds:6.1f} s   memory {memory:4.0f} MiB   disk {disk:4.0f} MiB"


def make_archives(folder: Path, count: int, size: int) -> list[Path]:
    folder.mkdir()
    paths = []
    for number in range(count):
        path = folder / f"Archive {number:03d}.zip"
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr("data.bin", os.urandom(size))
        paths.append(path)
    return paths


def environment(telegram: Telegram, address: str, data: Path) -> dict[str, str]:
    return {
        **os.environ,
        "PYTHONPATH": str(ROOT),
        "WORKER_DATABASE_URL": address,
        "WORKER_SECRET_KEY": SECRET_KEY,
        "WORKER_DATA_DIR": str(data),
        "WORKER_TELEGRAM__API_ID": "1",
        "WORKER_TELEGRAM__API_HASH": "0" * 32,
        "WORKER_TELEGRAM__HOST": telegram.host,
        "WORKER_TELEGRAM__PORT": str(telegram.port),
        "WORKER_TELEGRAM__PUBLIC_KEY": str(telegram.public_key),
        "WORKER_RATE_LIMITS__PROFILE": "relaxed",
        "WORKER_LOG_LEVEL": "warning",
    }


async def prepare(telegram: Telegram, address: str, archives: list[Path]) -> None:
    """Two accounts that read one source and may publish; the archives are posted there."""
    admin = telegram.admin
    for phone in PHONES:
        await admin.create_account(phone, "Ada")
    source = (await admin.create_channel("Source", members=list(PHONES)))["channel_id"]
    destination = (await admin.create_channel("Library", admins=list(PHONES)))["channel_id"]
    for path in archives:
        await admin.post_document(source, path, path.name)
    settings = Settings.model_validate(
        {
            "telegram": {
                "api_id": 1,
                "api_hash": "0" * 32,
                "host": telegram.host,
                "port": telegram.port,
                "public_key": telegram.public_key,
            },
            "rate_limits": {"profile": "relaxed"},
        }
    )

    async def code() -> str:
        return CODE

    database = Database(address)
    async with open_governance(database, settings.rate_limits, SystemClock()) as governance:
        login = Login(database, Sealer(bytes(32)), telegram_server(settings), governance, 10)
        for phone in PHONES:
            await log_in(login, phone, ask_code=code, ask_password=code)
        await channels.make_source(database, source)
        await channels.make_destination(database, destination)
    await database.close()
    await admin.set_shape(rtt_ms=RTT_MS, account_mbps=ACCOUNT_MBPS)


def disk_use(folder: Path) -> int:
    """What the files take up; folders that vanish meanwhile take nothing."""
    total = 0
    for place, _, names in os.walk(folder):
        for name in names:
            with contextlib.suppress(FileNotFoundError):
                total += (Path(place) / name).stat().st_blocks * 512
    return total


def watch(workers: list[subprocess.Popen[bytes]], workspace: Path) -> tuple[int, int]:
    """Wait for the workers; the most memory one of them took, and the most that lay on the disk."""
    memory = disk = 0
    while any(worker.poll() is None for worker in workers):
        for worker in workers:
            try:
                memory = max(memory, psutil.Process(worker.pid).memory_info().rss)
            except psutil.Error:
                continue
        disk = max(disk, disk_use(workspace))
        time.sleep(0.05)
    if any(worker.returncode for worker in workers):
        raise SystemExit(f"a worker ended with {[worker.returncode for worker in workers]}")
    return memory, disk


_TAKEN = """
    SELECT count(*), extract(epoch FROM max(published_at) - (SELECT min(started_at) FROM runs))::float8
    FROM packages
"""


async def seconds_taken(address: str, expected: int) -> float:
    connection = await asyncpg.connect(address)
    try:
        count, seconds = await connection.fetchrow(_TAKEN)
    finally:
        await connection.close()
    if count != expected:
        raise SystemExit(f"{count} of {expected} archives were published")
    return seconds


def start(phone: str, env: dict[str, str], folder: Path) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "worker", "run", "--once", "--account", phone]
    return subprocess.Popen(command, env=env, cwd=folder, stdout=subprocess.DEVNULL)


async def work(address: str, home: Path, archives: list[Path], phones: tuple[str, ...], sets: int) -> Cost:
    with open_telegram(home) as telegram:
        await prepare(telegram, address, archives)
        env = environment(telegram, address, home / "data") | {"WORKER_FLEET__SETS_IN_FLIGHT": str(sets)}
        workers = [start(phone, env, home) for phone in phones]
        try:
            memory, disk = await asyncio.to_thread(watch, workers, home / "data" / "workspace")
        finally:
            for worker in workers:
                worker.kill()
    return Cost(await seconds_taken(address, len(archives)), memory, disk)


def ingest(label: str, folder: Path, archives: list[Path], phones: tuple[str, ...], sets: int) -> Cost:
    """One run on a world of its own."""
    home = folder / label.replace(" ", "-")
    home.mkdir()
    home.chmod(0o711)
    with open_cluster(home / "database") as address:
        migrations.upgrade(address)
        cost = asyncio.run(work(address, home, archives, phones, sets))
    shutil.rmtree(home)
    print(f"{label:<34} {cost}", flush=True)
    return cost


def measure(archives: int, size: int) -> bool:
    folder = Path(tempfile.mkdtemp(prefix="fleet-bench-"))
    # For root, PostgreSQL runs as another user, who has to pass through here.
    folder.chmod(0o711)
    print(
        f"{archives} archives of {size / MIB:.0f} MiB, {RTT_MS} ms, {ACCOUNT_MBPS / 8:.0f} MB/s per account"
    )
    try:
        paths = make_archives(folder / "archives", archives, size)
        serial = ingest("one account, one after the other", folder, paths, PHONES[:1], 1)
        one = ingest("one account, both at once", folder, paths, PHONES[:1], IN_FLIGHT)
        two = ingest("two accounts", folder, paths, PHONES, IN_FLIGHT)
    finally:
        shutil.rmtree(folder)
    return judge(serial, one, two, size)


def judge(serial: Cost, one: Cost, two: Cost, size: int) -> bool:
    overlapped, shared = one.seconds / serial.seconds, two.seconds / one.seconds
    memory = max(one.memory, two.memory)
    # A file takes whole blocks.
    in_flight = IN_FLIGHT * (size + 64 * 1024)
    good = [
        told(overlapped <= OVERLAPPED_PROMISED, f"both at once / one after the other: {overlapped:.2f}"),
        told(shared <= TWO_PROMISED, f"two accounts / one: {shared:.2f}"),
        told(memory < MEMORY_PROMISED, f"memory: {memory / MIB:.0f} MiB at most"),
        told(one.disk <= in_flight, f"disk of one account: {one.disk / size:.1f} archives at most"),
        told(two.disk <= 2 * in_flight, f"disk of two accounts: {two.disk / size:.1f} archives at most"),
    ]
    return all(good)


def told(good: bool, line: str) -> bool:
    print(f"{'kept  ' if good else 'MISSED'} {line}")
    return good


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--archives", type=int, default=40)
    parser.add_argument("--mib", type=float, default=10)
    wanted = parser.parse_args()
    return 0 if measure(wanted.archives, int(wanted.mib * MIB)) else 1


if __name__ == "__main__":
    sys.exit(main())
