"""The two 16-bit words in which zip and old RAR archives keep a moment."""

from __future__ import annotations

from datetime import datetime
from functools import lru_cache


# Members of an archive share moments; the bound keeps a hostile one from filling memory with them.
@lru_cache(maxsize=8_192)
def dos_time(date: int, time: int) -> str | None:
    """ISO 8601 local time; None where the words name no moment at all."""
    year, month, day = 1980 + (date >> 9), (date >> 5) & 15, date & 31
    hour, minute, second = time >> 11, (time >> 5) & 63, (time & 31) * 2
    try:
        return datetime(year, month, day, hour, minute, second).isoformat()  # noqa: DTZ001  # local time, as stored
    except ValueError:
        return None
