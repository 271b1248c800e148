"""Every state that a model can come to, each once, the nearest first: so the first mistake has the shortest story."""

from __future__ import annotations

import gc
from collections import deque
from collections.abc import Callable, Hashable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

S = TypeVar("S", bound=Hashable)


@dataclass(frozen=True, slots=True)
class Step(Generic[S]):
    """What happens, in words, and the state after it. ``is_fault``: it may happen, but nobody can count on it."""

    what: str
    after: S
    is_fault: bool = False


@dataclass(frozen=True, slots=True)
class Mistake:
    """What is wrong, and the shortest way there."""

    what: str
    story: tuple[str, ...]

    def __str__(self) -> str:
        lines = [f"{number:>3}. {what}" for number, what in enumerate(self.story, 1)]
        return "\n".join([*lines, f"  => {self.what}"])


@dataclass(slots=True)
class Explored(Generic[S]):
    """All that was seen, in the order of its distance from the beginning."""

    states: list[S] = field(default_factory=list)
    mistake: Mistake | None = None


class Exploration(Generic[S]):
    """A breadth-first walk with a visited set. ``wrong`` names what must never be; ``ended`` is where work ends well."""

    def __init__(
        self,
        steps: Callable[[S], Iterable[Step[S]]],
        wrong: Callable[[S], str | None],
        ended: Callable[[S], bool],
    ) -> None:
        self._steps = steps
        self._wrong = wrong
        self._ended = ended
        self._states: list[S] = []
        self._kept: dict[Hashable, Any] = {}
        self._came: list[tuple[int, str]] = []
        # Steps that the fleet, time and people can be counted on to make, by where they lead.
        self._into: list[list[int]] = []

    def run(self, start: S) -> Explored[S]:
        """Walk until there is nothing left to see, or something is wrong."""
        # Hundreds of thousands of tuples that all stay: looking for garbage among them is a third of the time.
        gc.disable()
        try:
            return self._walk(start)
        finally:
            gc.enable()

    def _walk(self, start: S) -> Explored[S]:
        number = {start: 0}
        self._add(start, -1, "")
        waiting = deque([0])
        while waiting:
            at = waiting.popleft()
            state = self._states[at]
            if what := self._wrong(state):
                return Explored(self._states, Mistake(what, self._story(at)))
            for step in self._steps(state):
                to = number.get(step.after)
                if to is None:
                    to = len(self._states)
                    number[self._add(step.after, at, step.what)] = to
                    waiting.append(to)
                if not step.is_fault:
                    self._into[to].append(at)
        return Explored(self._states, self._stuck())

    def _add(self, state: S, came_from: int, by: str) -> S:
        # Most states differ in a field or two: the others are kept once for all.
        kept = self._kept
        if isinstance(state, tuple):
            state = tuple.__new__(type(state), (kept.setdefault(each, each) for each in state))
        self._states.append(state)
        self._came.append((came_from, kept.setdefault(by, by)))
        self._into.append([])
        return state

    def _stuck(self) -> Mistake | None:
        """The nearest state from which no further fault is needed for the work never to end."""
        ending = [at for at, state in enumerate(self._states) if self._ended(state)]
        hopeful = set(ending)
        while ending:
            for before in self._into[ending.pop()]:
                if before not in hopeful:
                    hopeful.add(before)
                    ending.append(before)
        lost = next((at for at in range(len(self._states)) if at not in hopeful), None)
        if lost is None:
            return None
        return Mistake(
            "from here on the content is never published, nor failed with a reason", self._story(lost)
        )

    def _story(self, at: int) -> tuple[str, ...]:
        return tuple(reversed(list(self._back(at))))

    def _back(self, at: int) -> Iterator[str]:
        while self._came[at][0] >= 0:
            at, by = self._came[at]
            yield by
