"""Times, sizes and counts as people read them."""

from __future__ import annotations

_UNITS = ("B", "kB", "MB", "GB", "TB")


def duration(seconds: float) -> str:
    """``45s``, ``6m 32s``, ``2h 34m``, ``3d 4h``: the two largest units."""
    whole = max(0, round(seconds))
    minutes, secs = divmod(whole, 60)
    hours, mins = divmod(minutes, 60)
    days, hrs = divmod(hours, 24)
    if days:
        return f"{days}d {hrs}h"
    if hours:
        return f"{hours}h {mins:02d}m"
    if minutes:
        return f"{minutes}m {secs:02d}s"
    return f"{secs}s"


def size(count: float) -> str:
    """``45.2 MB``; nothing after the point from a hundred on."""
    for unit in _UNITS[:-1]:
        if count < 999.5:
            return f"{count:.0f} {unit}" if unit == "B" or count >= 99.95 else f"{count:.1f} {unit}"
        count /= 1000
    return f"{count:.1f} {_UNITS[-1]}"


def count_of(number: int, noun: str) -> str:
    """``1 worker``, ``2 workers``, ``1,204 calls``."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"
