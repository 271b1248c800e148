"""``make bare``: the demo and the tests on Debian systems with nothing but what a newcomer has, as an ordinary user."""

from __future__ import annotations

import argparse
import contextlib
import fcntl
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from debian_tree import CACHE, CLONE, SYSTEMS, TOOLS, kept_system, run_inside, unpacked

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


# What the demo and the tests say of themselves.
TELLING = re.compile(r"\d+ doubled, \d+ lost|=.* (passed|failed|error).* in ")


@dataclass
class Outcome:
    """What came of one system."""

    name: str
    python: str = ""
    steps: list[tuple[str, str, float, str]] = field(default_factory=list)
    well: bool = True


def main() -> int:
    """Run on each system that was asked for; 0 if all was well on all of them."""
    # A shell that starts this in the background has Ctrl-C ignored, by this and all that it starts.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    asked = _asked()
    steps = ("demo",) if asked.quick else ("demo", "test")
    logs = CACHE / "logs" / time.strftime("%Y%m%d-%H%M%S")
    logs.mkdir(parents=True)
    with _alone():
        outcomes = [_attempt(name, logs, steps, asked) for name in asked.systems or SYSTEMS]
    print(f"\n{'system':<16}{'Python':<16}{'step':<8}{'':<9}{'seconds':>8}  last line")
    for outcome in outcomes:
        for step, verdict, seconds, last in outcome.steps:
            print(f"{outcome.name:<16}{outcome.python:<16}{step:<8}{verdict:<9}{seconds:>8.0f}  {last}")
    print(f"Logs: {logs}")
    return 0 if all(outcome.well for outcome in outcomes) else 1


def _asked() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("systems", nargs="*", metavar="SYSTEM", help=", ".join(SYSTEMS))
    parser.add_argument("--quick", action="store_true", help="only the demo")
    parser.add_argument("--fresh", action="store_true", help="make the systems anew")
    parser.add_argument("--jobs", default="6", help="as in make test")
    options = parser.parse_args()
    if unknown := set(options.systems) - set(SYSTEMS):
        parser.error(f"there is no {', '.join(sorted(unknown))}; there are {', '.join(SYSTEMS)}")
    if os.geteuid() != 0:
        parser.error("making a system, and changing into it, takes root")
    if lacking := [tool for tool in TOOLS if not shutil.which(tool)]:
        parser.error(
            f"install {' and '.join(lacking)} first (on Debian: apt install debootstrap git util-linux)"
        )
    return options


@contextlib.contextmanager
def _alone() -> Iterator[None]:
    """Hold the cache: two runs would unpack into the same place."""
    with (CACHE / "lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            sys.exit(f"another run is using {CACHE}")
        yield


def _attempt(name: str, logs: Path, steps: tuple[str, ...], asked: argparse.Namespace) -> Outcome:
    print(f"== {name}", flush=True)
    outcome = Outcome(name)
    try:
        kept = kept_system(name, logs / f"{name}-system.log", fresh=asked.fresh)
    except subprocess.CalledProcessError as error:
        outcome.well = False
        outcome.steps.append(("system", f"exit {error.returncode}", 0, f"see {name}-system.log"))
        return outcome
    with unpacked(kept) as tree:
        for step in steps:
            _take_step(outcome, tree, step, logs / f"{name}-{step}.log", asked.jobs)
    return outcome


def _take_step(outcome: Outcome, tree: Path, step: str, log: Path, jobs: str) -> None:
    """Run one target of make, and say how it ended."""
    began = time.monotonic()
    with log.open("w") as output:
        code = run_inside(
            tree, ["make", "--no-print-directory", "-C", str(CLONE), step, f"JOBS={jobs}"], output
        )
    seconds = time.monotonic() - began
    lines = [line for line in log.read_text(errors="replace").splitlines() if line.strip()]
    for line in lines[-6:]:
        print(f"   {line}")
    said = [line.strip(" =") for line in lines if TELLING.search(line)]
    last = (said or lines or [""])[-1]
    outcome.python = outcome.python or _python(tree)
    outcome.well &= code == 0
    outcome.steps.append((step, "well" if code == 0 else f"exit {code}", seconds, last))
    print(f"   make {step} ended with {code} after {seconds:.0f} s, Python {outcome.python}", flush=True)


def _python(tree: Path) -> str:
    """The version that make chose, from the environment it made."""
    made = tree / CLONE.relative_to("/") / ".venv" / "pyvenv.cfg"
    if not made.exists():
        return "none"
    pairs = (line.partition("=") for line in made.read_text().splitlines())
    return next((value.strip() for name, _, value in pairs if name.strip() == "version"), "?")


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
