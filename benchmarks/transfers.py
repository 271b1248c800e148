"""Transfers side by side: our engine and the clients people use, on one loopback Telegram, in one run.

Every client has its own virtual environment and its own process; the server has a process of its own, and
what it costs is shown, since a case in which the server is the bottleneck says nothing about a client. Run
by `make bench`; `make bench QUICK=1` takes a smaller file and fewer lines. The table is written to
docs/performance.md.

Every ratio is one between figures of the same round, and the median of the rounds counts: a host whose
neighbours come and go is slow for both of a pair, or for neither.
"""

import argparse
import asyncio
import contextlib
import hashlib
import itertools
import json
import mmap
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import psutil
from cryptography.hazmat.primitives import serialization
from transfer_report import Case, Line, Report

from worker.cipher import ige
from worker.sandbox.admin_client import SandboxAdmin
from worker.sandbox.public_key import fingerprint

ROOT = Path(__file__).resolve().parents[1]
HOME = ROOT / ".worker" / "bench"
MIB = 1 << 20
CODE = "12345"
# 5 MB/s per connection, as a line to a distant data centre often is.
CAPPED_MBPS = 40.0
FAR_MS = 100
OPERATIONS = ("down", "up", "publish")


@dataclass(frozen=True, slots=True)
class Peer:
    """A client to measure: its script, and what its environment is made of (None: this one)."""

    name: str
    script: str
    requirements: tuple[str, ...] | None = None
    environment: str = ""
    parallel: bool = False
    # Waits for a part before it asks for the next; slow: in small parts at that.
    is_sequential: bool = False
    is_slow: bool = False


PEERS = (
    Peer("fleet", "fleet.py"),
    Peer(
        "kurigram",
        "pyrogram_client.py",
        ("kurigram==2.2.26", "tgcrypto==1.2.5"),
        "kurigram",
        is_sequential=True,
    ),
    Peer(
        "pyrogram",
        "pyrogram_client.py",
        ("pyrogram==2.0.106", "tgcrypto==1.2.5"),
        "pyrogram",
        is_sequential=True,
    ),
    Peer("telethon", "telethon_client.py", ("telethon==1.45.0", "cryptg==0.6.0"), "telethon", is_slow=True),
    Peer(
        "telethon parallel",
        "telethon_client.py",
        ("telethon==1.45.0", "cryptg==0.6.0"),
        "telethon",
        parallel=True,
    ),
)


@dataclass(frozen=True, slots=True)
class Plan:
    """What one run measures."""

    size: int
    capped_size: int
    rtts: tuple[int, ...]
    capped_rtts: tuple[int, ...]
    rounds: int

    def size_for(self, peer: Peer, line: Line) -> int:
        """Less for those whose rate is the same whatever the size, where the whole file takes minutes."""
        whole = self.capped_size if line.mbps else self.size
        if peer.is_sequential and line.rtt_ms >= FAR_MS:
            whole //= 4
        return min(whole, self.size // 16) if peer.is_slow else whole

    def lines(self) -> Iterator[Line]:
        for rtt in self.rtts:
            yield Line(rtt, 0.0)
        for rtt in self.capped_rtts:
            yield Line(rtt, CAPPED_MBPS)


# A capped connection carries the same bytes per second whatever the size: a smaller file says as much.
FULL = Plan(256 * MIB, 32 * MIB, (0, 20, 50, 100), (0, 20, 50, 100), 3)
QUICK = Plan(64 * MIB, 16 * MIB, (0, 50), (50,), 1)


def python_of(peer: Peer) -> str:
    """The interpreter that has this client; installed from the package index on first use."""
    if peer.requirements is None:
        return sys.executable
    home = HOME / "clients" / peer.environment
    ready = home / ".ready"
    wanted = "\n".join(peer.requirements)
    if not ready.exists() or ready.read_text() != wanted:
        print(f"installing {' '.join(peer.requirements)} …", flush=True)
        subprocess.run([sys.executable, "-m", "venv", "--clear", str(home)], check=True)
        pip = [str(home / "bin" / "python"), "-m", "pip", "--disable-pip-version-check", "install", "--quiet"]
        subprocess.run([*pip, *peer.requirements], check=True)
        ready.write_text(wanted)
    return str(home / "bin" / "python")


class Client:
    """A client process that is told what to do."""

    def __init__(self, peer: Peer, facts: dict[str, Any]) -> None:
        self.peer = peer
        self._out = HOME / "out" / f"{peer.name.replace(' ', '-')}.zip"
        self._out.parent.mkdir(parents=True, exist_ok=True)
        script = ROOT / "benchmarks" / "clients" / peer.script
        self._errors = (HOME / f"{peer.name.replace(' ', '-')}.log").open("w")
        self._process = subprocess.Popen(
            [python_of(peer), str(script), json.dumps({**facts, "parallel": peer.parallel})],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            text=True,
            env={**os.environ, "PYTHONPATH": str(ROOT) if peer.requirements is None else ""},
        )
        self._hear()

    def do(self, operation: str) -> dict[str, Any]:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps({"do": operation, "out": str(self._out)}) + "\n")
        self._process.stdin.flush()
        return self._hear()

    def _hear(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            sys.exit(f"{self.peer.name} ended by itself; see {self._errors.name}")
        return json.loads(line)

    def close(self) -> None:
        self._process.stdin.close()
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._errors.close()


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
        self.admin = SandboxAdmin(self.facts["host"], self.facts["admin_port"])
        self._kept: set[str] = set()

    async def arrange(self, sizes: list[int]) -> list[dict[str, Any]]:
        """Post a file of each client's size; what each client has to know."""
        phones = [f"+1000000{number:04d}" for number in range(len(sizes))]
        for phone in phones:
            await self.admin.create_account(phone, "Bench", premium=True)
        made = await self.admin.create_channel("Archives", admins=phones)
        posted = {
            size: await self.admin.post_document(made["channel_id"], _file_of(size), "archive.zip")
            for size in set(sizes)
        }
        self._kept = {str(each["document_id"]) for each in posted.values()}
        common = {
            **self.facts,
            "channel_id": made["channel_id"],
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


def measure_ceiling(size: int) -> float:
    """MB per CPU-second of what cannot be saved: the cipher both ways, and SHA-256 three times."""
    block, key, iv = bytearray(MIB), os.urandom(32), os.urandom(32)
    began = time.process_time()
    for _ in range(size // MIB):
        ige.encrypt_in_place([(block, key, iv)])
        ige.decrypt_in_place([(block, key, iv)])
        for _ in range(3):
            hashlib.sha256(block).digest()
    return size / 1e6 / (time.process_time() - began)


def claim_memory(size: int) -> None:
    """Have the system own this much memory before a case begins.

    A virtual machine hands memory that lies idle back to its host, and to get a page again costs ten times
    as much as to fill it: whoever writes a file first would pay for that, and others would not.
    """
    flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | mmap.MAP_POPULATE
    mmap.mmap(-1, size, flags=flags).close()


def _file_of(size: int) -> Path:
    path = HOME / f"archive-{size // MIB}.zip"
    if not path.exists() or path.stat().st_size != size:
        with path.open("wb") as file:
            for _ in range(size // MIB):
                file.write(os.urandom(MIB))
    return path


def _sha256_of(size: int) -> str:
    with _file_of(size).open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def run_line(line: Line, plan: Plan, peers: tuple[Peer, ...], operations: tuple[str, ...]) -> list[Case]:
    """Every client and every operation on one kind of line; in turn, so that noise hits all alike."""
    sizes = [plan.size_for(peer, line) for peer in peers]
    server = Server(line)
    with contextlib.closing(server), contextlib.ExitStack() as stack:
        clients = [
            (stack.enter_context(contextlib.closing(Client(peer, facts))), size, _sha256_of(size))
            for peer, size, facts in zip(peers, sizes, asyncio.run(server.arrange(sizes)), strict=True)
        ]
        cases = []
        for operation, number in itertools.product(operations, range(plan.rounds)):
            for client, size, expected in clients:
                claim_memory(3 * size)
                before = server.cpu()
                result = client.do(operation)
                used = server.cpu() - before
                if result["sha256"] not in (None, expected):
                    sys.exit(f"{client.peer.name} did not {operation} the right bytes")
                case = Case(
                    client=client.peer.name,
                    operation=operation,
                    line=line,
                    round=number,
                    size=size,
                    seconds=result["seconds"],
                    cpu=result["cpu"],
                    peak=result["peak"],
                    server_cpu=used,
                    ceiling=measure_ceiling(64 * MIB),
                )
                cases.append(case)
                print(case, flush=True)
                server.forget_uploads()
        return cases


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a smaller file, fewer lines, one round")
    parser.add_argument("--only", help="comma-separated names of clients, for trying things out")
    parser.add_argument("--rtt", help="comma-separated round trips in ms, uncapped, for trying things out")
    parser.add_argument("--do", help="comma-separated operations, for trying things out")
    parser.add_argument("--rounds", type=int)
    parser.add_argument("--write", type=Path, help="write the report to this file")
    given = parser.parse_args()
    plan = QUICK if given.quick else FULL
    if given.rtt is not None:
        plan = replace(plan, rtts=tuple(int(rtt) for rtt in given.rtt.split(",")), capped_rtts=())
    plan = replace(plan, rounds=given.rounds or plan.rounds)
    peers = tuple(peer for peer in PEERS if not given.only or peer.name in given.only.split(","))
    operations = tuple(given.do.split(",")) if given.do else OPERATIONS
    HOME.mkdir(parents=True, exist_ok=True)
    cases = [case for line in plan.lines() for case in run_line(line, plan, peers, operations)]
    report = Report(cases, ige.backend().name, plan.rounds)
    print(report.text())
    if given.write:
        given.write.write_text(report.document())
    return report.verdict()


if __name__ == "__main__":
    sys.exit(main())
