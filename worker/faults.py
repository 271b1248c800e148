"""Failpoints: named places just before and just after an external effect.

Inert unless ``WORKER_FAULTS`` is set. Then a process can record every place it reaches
(``record=FILE``), kill itself with a real SIGKILL at its Nth reach (``kill=N``) or at the Nth reach of one
place (``kill=publish.send:after:2``), or stop itself there with SIGSTOP until it is continued
(``stop=dedupe.lock:before:1``). Exceptions would be no substitute: they run ``finally`` blocks.
"""

from __future__ import annotations

import contextlib
import os
import re
import signal
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from worker.errors import UserError

if TYPE_CHECKING:
    from collections.abc import Iterator

Edge = Literal["before", "after"]
_PLACE = re.compile(r"\d+|[\w.]+:(before|after):\d+")


@dataclass(slots=True)
class _Plan:
    kill_at: str = ""
    stop_at: str = ""
    record: Path | None = None
    total: int = 0
    reached: Counter[str] = field(default_factory=Counter)

    def reach(self, place: str) -> None:
        self.total += 1
        self.reached[place] += 1
        here = (str(self.total), f"{place}:{self.reached[place]}")
        if self.record is not None:
            # One unbuffered append per line: what was written before the SIGKILL stays written.
            with self.record.open("ab", buffering=0) as file:
                file.write(f"{place}\n".encode())
        if self.kill_at in here:
            os.kill(os.getpid(), signal.SIGKILL)
        if self.stop_at in here:
            os.kill(os.getpid(), signal.SIGSTOP)


def _parse(spec: str) -> _Plan | UserError | None:
    """The plan, or what is wrong with it: raised at the first reach, where a command can report it."""
    if not spec:
        return None
    plan = _Plan()
    for item in spec.split(","):
        action, _, value = item.partition("=")
        if action == "kill" and _PLACE.fullmatch(value):
            plan.kill_at = value
        elif action == "stop" and _PLACE.fullmatch(value):
            plan.stop_at = value
        elif action == "record" and value:
            plan.record = Path(value)
        else:
            return UserError(
                f"WORKER_FAULTS has {item!r}", remedy="use kill=N, kill=place:before:N, stop=… or record=FILE"
            )
    return plan


_plan = _parse(os.environ.get("WORKER_FAULTS", ""))


def reach(point: str, edge: Edge) -> None:
    """Say that the process stands right before or right after the effect called ``point``."""
    if _plan is None:
        return
    if isinstance(_plan, UserError):
        raise _plan
    _plan.reach(f"{point}:{edge}")


@contextlib.contextmanager
def around(point: str) -> Iterator[None]:
    """Bracket one external effect. ``after`` is reached only if the effect did not raise."""
    reach(point, "before")
    yield
    reach(point, "after")
