"""Whether a set fits on the disk, and what to say when it does not. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from worker.domain.split_plan import MIB

GIB = 1024 * MIB
# Space comes back when a set in flight ends, which wakes those that ask; somebody else's files take longer.
_ASKING_SECONDS = 10.0
_FULL_SECONDS = 60.0
_TOO_SMALL_SECONDS = 1800.0


@dataclass(frozen=True, slots=True)
class Space:
    """What a volume holds, in bytes."""

    free: int
    total: int


@dataclass(frozen=True, slots=True)
class NoRoom:
    """A set does not fit now. ``asks``: it would if the sets in flight were done."""

    reason: str
    seconds: float
    asks: bool = False


def lack_of_room(
    needed: int, space: Space, *, kept_free: int, promised: int, in_flight: int
) -> NoRoom | None:
    """Why a set of ``needed`` bytes cannot be fetched now; None if it can.

    ``promised`` bytes are still to be written for other sets, ``in_flight`` bytes are what all sets under way
    take up when they are complete.
    """
    room = max(0, space.free - kept_free - promised)
    if needed <= room:
        return None
    if needed > space.total - kept_free:
        what = f"disk: {_amount(needed)} needed, but all of it holds {_amount(space.total - kept_free)}"
        return NoRoom(f"{what} — put data_dir on a larger one", _TOO_SMALL_SECONDS)
    unit, divisor = _unit(needed)
    reason = f"disk: {needed / divisor:.1f} {unit} needed, {room / divisor:.1f} free"
    if needed <= space.free - kept_free + in_flight:
        return NoRoom(reason, _ASKING_SECONDS, asks=True)
    return NoRoom(f"{reason} — free some space", _FULL_SECONDS)


def _amount(count: int) -> str:
    unit, divisor = _unit(count)
    return f"{max(0, count) / divisor:.1f} {unit}"


def _unit(count: int) -> tuple[str, int]:
    return ("GiB", GIB) if count >= GIB else ("MiB", MIB)
