"""What the measured transfers show: tables, ratios, and whether the targets are met."""

import os
import platform
import statistics
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

MB, GIB, MIB = 1e6, 1 << 30, 1 << 20
OURS, REFERENCE = "fleet", "kurigram"
# Beyond this the server is what is measured, and a wall-clock figure says nothing about the client.
BUSY_SHARE = 0.8
MISSED, VOID = 1, 2
WHAT = {"down": "download", "up": "upload", "publish": "download + hash + publish"}

_INTRODUCTION = (
    "Written by `make bench`. One run on one machine: our engine and the clients people use, each in its",
    "own environment and process, on the loopback Telegram in a process of its own. Absolute figures belong",
    "to the machine; the ratios are what counts.",
)
_CEILING = (
    "the same bytes through AES-IGE both ways and three times",
    "through SHA-256, one message after the other, and nothing else. Several messages side by side pass the",
    "cipher faster than that.",
)


@dataclass(frozen=True, slots=True)
class Line:
    """A kind of connection; no bandwidth means as much as there is."""

    rtt_ms: int
    mbps: float

    def __str__(self) -> str:
        return f"{self.rtt_ms} ms" + (f", {self.mbps / 8:.0f} MB/s per connection" if self.mbps else "")


@dataclass(frozen=True, slots=True)
class Case:
    """One client doing one thing over one kind of line, once.

    ``ceiling`` is what the processor was able to do right after it, in MB per CPU-second.
    """

    client: str
    operation: str
    line: Line
    round: int
    size: int
    seconds: float
    cpu: float
    peak: int
    server_cpu: float
    ceiling: float

    @property
    def speed(self) -> float:
        return self.size / MB / self.seconds

    @property
    def per_cpu(self) -> float:
        return self.size / MB / self.cpu

    @property
    def cpu_per_gib(self) -> float:
        return self.cpu * GIB / self.size

    @property
    def server_share(self) -> float:
        return self.server_cpu / self.seconds

    @property
    def is_void(self) -> bool:
        """Whether the server was too busy for the wall clock to mean anything."""
        return self.server_share > BUSY_SHARE

    def __str__(self) -> str:
        return (
            f"{self.line!s:>34}  {self.operation:8} {self.client:18} {self.speed:7.1f} MB/s "
            f"{self.cpu_per_gib:6.2f} CPU s/GiB {self.peak / MIB:5.0f} MiB  server {self.server_share:4.0%}"
        )


@dataclass(frozen=True, slots=True)
class Target:
    """A promise: what was measured, the least (or most) it may be, and what it aims at.

    A void one says nothing: neither that the promise was kept nor that it was not.
    """

    what: str
    value: float
    least: float
    aim: float
    unit: str
    is_upper: bool = False
    is_void: bool = False

    @property
    def state(self) -> str:
        if self.is_void:
            return "void: the server was too busy"
        if self._reaches(self.aim):
            return "aim reached"
        return "MISSED" if self.is_missed else "met"

    @property
    def is_missed(self) -> bool:
        return not self.is_void and not self._reaches(self.least)

    def _reaches(self, bound: float) -> bool:
        return self.value <= bound if self.is_upper else self.value >= bound

    def row(self) -> str:
        return (
            f"| {self.what} | {self.least:g} {self.unit} | {self.aim:g} {self.unit} "
            f"| **{self.value:.3g} {self.unit}** | {self.state} |"
        )


class Report:
    """All cases of one run, several rounds of each."""

    def __init__(self, cases: list[Case], cipher: str, rounds: int) -> None:
        self._cases, self._cipher, self._rounds = cases, cipher, rounds

    def _rounds_of(self, client: str, operation: str, line: Line) -> list[Case]:
        wanted = (client, operation, line)
        return [case for case in self._cases if (case.client, case.operation, case.line) == wanted]

    def _typical(self) -> Iterator[Case]:
        """One case for all rounds of it: the medians, and the highest memory."""
        for client, operation, line in dict.fromkeys((c.client, c.operation, c.line) for c in self._cases):
            rounds = self._rounds_of(client, operation, line)
            yield replace(
                rounds[0],
                seconds=statistics.median(case.seconds for case in rounds),
                cpu=statistics.median(case.cpu for case in rounds),
                server_cpu=statistics.median(case.server_cpu for case in rounds),
                ceiling=statistics.median(case.ceiling for case in rounds),
                peak=max(case.peak for case in rounds),
            )

    def _ratio(
        self, operation: str, line: Line, of: Callable[[Case], float], *, to: str = REFERENCE
    ) -> float | None:
        """What ours has of something in proportion to another client; None if either was not measured."""
        pairs = zip(
            self._rounds_of(OURS, operation, line), self._rounds_of(to, operation, line), strict=False
        )
        ratios = [of(ours) / of(theirs) for ours, theirs in pairs]
        return statistics.median(ratios) if ratios else None

    def _was_busy(self, client: str, operation: str, line: Line) -> bool:
        """Whether the server, not this client, is what was measured."""
        shares = [case.server_share for case in self._rounds_of(client, operation, line)]
        return statistics.median(shares) > BUSY_SHARE

    def targets(self) -> Iterator[Target]:
        near, far = Line(0, 0.0), Line(50, 0.0)
        for operation, least, aim in (("down", 8, 11), ("up", 4, 5)):
            ratio = self._ratio(operation, far, lambda case: case.speed)
            if ratio is not None:
                what = f"{WHAT[operation]} at 50 ms, wall, against stock Kurigram"
                is_void = any(self._was_busy(client, operation, far) for client in (OURS, REFERENCE))
                yield Target(what, ratio, least, aim, "x", is_void=is_void)
        ratio = self._ratio("publish", near, lambda case: case.per_cpu)
        if ratio is not None:
            what = f"{WHAT['publish']} at 0 ms, MB per CPU-second, against stock Kurigram"
            yield Target(what, ratio, 2.5, 3.5, "x")
        shares = [case.per_cpu / case.ceiling for case in self._rounds_of(OURS, "publish", near)]
        if shares:
            yield Target("the same, share of the ceiling", 100 * statistics.median(shares), 50, 70, "%")
        for operation in ("down", "up"):
            others = {case.client for case in self._cases} - {OURS}
            ratios = [
                self._ratio(operation, near, lambda case: case.cpu_per_gib, to=other) for other in others
            ]
            measured = [ratio for ratio in ratios if ratio is not None]
            if measured:
                what = f"CPU seconds per GiB against the best peer, {WHAT[operation]}"
                yield Target(what, max(measured), 0.6, 0.4, "x", is_upper=True)
        peaks = [case.peak for case in self._cases if case.client == OURS]
        if peaks:
            yield Target("peak memory", max(peaks) / MIB, 250, 150, "MiB", is_upper=True)

    def verdict(self) -> int:
        """The exit code: 0 if every target is met, 1 if one is missed, 2 if one is void and none missed."""
        targets = list(self.targets())
        if any(target.is_missed for target in targets):
            return MISSED
        return VOID if any(target.is_void for target in targets) else 0

    def _target_table(self) -> Iterator[str]:
        yield "| target (ratio in one run) | at least | aim | measured | |"
        yield "|---|---|---|---|---|"
        yield from (target.row() for target in self.targets())

    def _case_table(self, operation: str) -> Iterator[str]:
        yield "| line | client | MB/s | ours is | CPU s/GiB | peak memory | server |"
        yield "|---|---|---:|---:|---:|---:|---:|"
        for case in self._typical():
            if case.operation != operation:
                continue
            faster = None
            if case.client != OURS:
                faster = self._ratio(operation, case.line, lambda case: case.speed, to=case.client)
            ratio = f"{faster:.1f} x" if faster else ""
            void = " (void)" if case.is_void else ""
            yield (
                f"| {case.line} | {case.client} | {case.speed:.1f}{void} | {ratio} | {case.cpu_per_gib:.2f} "
                f"| {case.peak / MIB:.0f} MiB | {case.server_share:.0%} |"
            )

    @property
    def _ceiling(self) -> float:
        return statistics.median(case.ceiling for case in self._cases)

    def text(self) -> str:
        """For the terminal."""
        return "\n".join(["", *self._target_table(), "", f"ceiling: {self._ceiling:.0f} MB per CPU-second"])

    def document(self) -> str:
        """For docs/performance.md."""
        sizes = sorted({case.size // MIB for case in self._cases if case.client == OURS})
        slow = sorted({case.size // MIB for case in self._cases} - set(sizes))
        machine = (
            f"{os.cpu_count()} cores, Python {platform.python_version()}, {platform.system()} "
            f"{platform.machine()}; cipher: {self._cipher}; files of {' and '.join(map(str, sizes))} MiB; "
            f"median of {self._rounds}."
        )
        lines = ["# Performance", "", *_INTRODUCTION, "", machine]
        if slow:
            given = " or ".join(map(str, slow))
            lines += [
                "Clients that wait for a part before they ask for the next have the same rate whatever the",
                f"size; on far or capped lines, Telethon on all, they were given {given} MiB.",
            ]
        lines += ["", *self._target_table(), ""]
        lines += [f"The ceiling is {self._ceiling:.0f} MB per CPU-second: {_CEILING[0]}", *_CEILING[1:], ""]
        lines += [
            f"A wall-clock figure is void where the server needed more than {BUSY_SHARE:.0%} of a core."
        ]
        lines += ["`fleet` also compares every range with the server's hashes, which the others do not."]
        for operation, what in WHAT.items():
            lines += ["", f"## {what[0].upper()}{what[1:]}", "", *self._case_table(operation)]
        return "\n".join(lines) + "\n"


if __name__ == "__main__":
    sys.exit("run benchmarks/transfers.py")
