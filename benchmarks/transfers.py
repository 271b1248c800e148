"""Transfers side by side: our engine and the clients people use, on one loopback Telegram, in one run.

Every client has its own virtual environment and its own process; the server has a process of its own, and
what it costs is shown, since a case in which the server is the bottleneck says nothing about a client. Run
by `make bench`; `make bench QUICK=1` takes a smaller file and fewer lines. The table is written to
docs/performance.md. The exit code is 1 if a target was missed, 2 if one is void and none was missed.

Every ratio is one between figures of the same round, and the median of the rounds counts: a host whose
neighbours come and go is slow for both of a pair, or for neither.
"""

import argparse
import asyncio
import contextlib
import hashlib
import itertools
import os
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from transfer_clients import HOME, PEERS, Client, Peer
from transfer_report import REFERENCE, Case, Line, Report
from transfer_server import MIB, Server, sha256_of

from worker.cipher import ige

# 5 MB/s per connection, as a line to a distant data centre often is.
CAPPED_MBPS = 40.0
FAR_MS = 100
OPERATIONS = ("down", "up", "publish")
# Only where CPU time is judged: it would take minutes on every line.
SETTLING_SECONDS = 3.0


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
        if peer.is_sequential:
            whole //= 4 if line.rtt_ms >= FAR_MS or peer.name != REFERENCE else 2 if line.mbps else 1
        return min(whole, self.size // 16) if peer.is_slow else whole

    def lines(self) -> Iterator[Line]:
        for rtt in self.rtts:
            yield Line(rtt, 0.0)
        for rtt in self.capped_rtts:
            yield Line(rtt, CAPPED_MBPS)


# A capped connection carries the same bytes per second whatever the size: a smaller file says as much.
FULL = Plan(256 * MIB, 32 * MIB, (0, 20, 50, 100), (0, 20, 50, 100), 3)
QUICK = Plan(64 * MIB, 16 * MIB, (0, 50), (50,), 1)


def measure_ceiling(size: int) -> float:
    """MB per CPU-second of what cannot be saved: the cipher both ways, and SHA-256 three times."""
    block, key, iv = bytearray(MIB), os.urandom(32), os.urandom(32)
    began = time.process_time()
    for _ in range(size // MIB):
        ige.encrypt_in_place([(block, key, iv)])
        ige.backend().decrypt([(block, key, iv)])
        for _ in range(3):
            hashlib.sha256(block).digest()
    return size / 1e6 / (time.process_time() - began)


def claim_memory(size: int, pause: float) -> None:
    """Have the system own this much memory before a case begins.

    A virtual machine hands memory that lies idle back to its host, and to get a page again costs ten times
    as much as to fill it: whoever writes a file then would pay for that, and others would not. It looks for
    idle memory two seconds after some was freed: after the pause it has looked, and what is freed here lies
    ready for as long as a case takes. The system takes the pages of a file from those that were one's last.
    """
    time.sleep(pause)
    path, block = HOME / "claim", bytes(MIB)
    with path.open("wb") as file:
        for _ in range(size // MIB):
            file.write(block)
    path.unlink()


def run_line(line: Line, plan: Plan, peers: tuple[Peer, ...], operations: tuple[str, ...]) -> list[Case]:
    """Every client and every operation on one kind of line; in turn, so that noise hits all alike."""
    sizes = [plan.size_for(peer, line) for peer in peers]
    server = Server(line)
    with contextlib.closing(server), contextlib.ExitStack() as stack:
        clients = [
            (stack.enter_context(contextlib.closing(Client(peer, facts))), size, sha256_of(size))
            for peer, size, facts in zip(peers, sizes, asyncio.run(server.arrange(sizes)), strict=True)
        ]
        cases = []
        for operation, number in itertools.product(operations, range(plan.rounds)):
            for client, size, expected in clients:
                claim_memory(3 * size, SETTLING_SECONDS if line.rtt_ms == 0 and not line.mbps else 0)
                before = server.cpu()
                result = client.do(operation)
                used = server.cpu() - before
                if {result["sha256"], server.received(operation)} - {None} != {expected}:
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
