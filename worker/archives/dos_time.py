"""The two 16-bit words in which zip and old RAR archives keep a moment."""

from __future__ import annotations

from functools import lru_cache


# Members of an archive share moments; the bound keeps a hostile one from filling memory with them.
@lru_cache(maxsize=8_192)
def dos_time(date: int, time: int) -> str | None:
    """ISO 8601 local time; None where the words name no moment at all."""
    year, month, day = 1980 + (date >> 9), (date >> 5) & 15, date & 31
    hour, minute, second = time >> 11, (time >> 5) & 63, (time & 31) * 2
    if not (1 <= month <= 12 and 1 <= day <= 31 and hour < 24 and minute < 60 and second < 60):
        return None
    return f"{year:04d}-{month:02d}-{day:02d}T{hour:02d}:{minute:02d}:{second:02d}"
