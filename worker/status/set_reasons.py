"""Why a set is where it is, in words for a person. Pure."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from worker.plain_text import plain
from worker.status.wording import duration

if TYPE_CHECKING:
    from worker.store.set_listing import ListedSet

_FLOOD = re.compile(r"FLOOD_WAIT|FLOOD_PREMIUM_WAIT|SLOWMODE_WAIT|flood wait", re.IGNORECASE)


def why(found: ListedSet, standard_limit: int | None = None) -> str:
    """One line: what it waits for, or what became of it.

    ``standard_limit`` is the largest file that an account without Premium sends in one piece.
    """
    reason = found.reason or ""
    words = {
        "collecting": _flood_wait(found) or reason or "waits for more of its parts",
        "ready": _why_ready(found, standard_limit),
        "claimed": f"{found.worker or 'an account'} works on it",
        "published": f"package {found.package_id}, metadata pending",
        "indexed": f"package {found.package_id}",
        "duplicate": f"the same as package {found.package_id}",
        "failed": f"{reason} — try again: worker sets retry {found.id}",
    }
    return plain(words.get(found.state, reason))


def _why_ready(found: ListedSet, standard_limit: int | None) -> str:
    if found.sender is not None:
        return _why_begun(found)
    if not found.is_enabled:
        return f"{found.channel} is disabled"
    if not found.readers:
        return f"no account that is logged in reads {found.channel}"
    if found.wait_seconds <= 0:
        return _why_next(found, standard_limit)
    return _flood_wait(found) or f"{found.reason or 'waits'} (again at {_clock(found)})"


def _why_begun(found: ListedSet) -> str:
    told = f"{found.sender} has begun to publish it"
    if found.sender_state not in (None, "ready"):
        # Another account takes it over by itself, where one can; a person may also end it.
        ends = f"to end it without: worker recover --give-up {found.id}"
        return f"{told} and does not work: another account that has the bytes goes on with it — {ends}"
    reason = _flood_wait(found) or found.reason
    return f"{told}: {reason}" if reason else told


def _flood_wait(found: ListedSet) -> str | None:
    if found.wait_seconds > 0 and found.reason and _FLOOD.search(found.reason):
        return f"flood wait until {_clock(found)}"
    return None


def _why_next(found: ListedSet, standard_limit: int | None) -> str:
    if standard_limit is not None and found.part_count == 1 and found.total_size > standard_limit:
        taken = "a Premium account that reads the channel takes it, or any other after an hour"
        alone = "no Premium account reads the channel, so it is split"
        return (
            f"next in line: needs a Premium account or a split; {taken if found.premium_readers else alone}"
        )
    return f"next in line (last time: {found.reason})" if found.reason else "next in line"


def _clock(found: ListedSet) -> str:
    """The time on the wall, and the date where that is not today's."""
    local = found.not_before.astimezone()
    if found.wait_seconds < 12 * 3600:
        return f"{local:%H:%M}"
    return f"{local:%Y-%m-%d %H:%M}, in {duration(found.wait_seconds)}"
