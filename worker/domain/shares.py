"""How many accounts each worker runs: as many as any other, give or take one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

T = TypeVar("T")


def fair_share(held: Mapping[Any, int], me: Any, *, accounts: int, free: int) -> int:
    """How many of ``accounts`` this worker should run, given what every worker holds and how many are free.

    Never more than the accounts divided by the workers, rounded up. All workers see the same numbers: where
    one has to give way to a worker that has too few, they agree on which.
    """
    most, least = -(-accounts // len(held)), accounts // len(held)
    mine = held[me]
    if mine > most:
        return most
    if any(count < least for worker, count in held.items() if worker != me):
        # What is free is for those who have too few; if nothing is, the one that has the most yields.
        if mine < least:
            return least
        richest = max(held, key=lambda worker: (held[worker], str(worker)))
        return mine - 1 if mine > least and me == richest and not free else mine
    return most


def preferred(accounts: Sequence[T], *, place: int, workers: int) -> list[T]:
    """The accounts in the order in which the worker at this place should try them, so that few collide."""
    start = place * -(-len(accounts) // max(1, workers))
    return [*accounts[start:], *accounts[:start]]
