"""The status for eyes: sections that are there only if there is something to say in them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.console import Group
from rich.padding import Padding
from rich.text import Text

from worker.cli.status_tables import (
    accounts_table,
    activity_table,
    limits_tables,
    pauses_table,
    progress_tables,
    share_of,
    waiting_table,
    workers_table,
)
from worker.status.model import SyncState
from worker.status.wording import count_of, duration, size

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rich.console import RenderableType

    from worker.status.model import FleetStatus, Sync

_STATE_STYLES = {
    SyncState.RUNNING: "green",
    SyncState.IDLE: "green",
    SyncState.WAITING: "yellow",
    SyncState.PAUSED: "yellow",
    SyncState.STOPPED: "red",
}


def compact_line(status: FleetStatus) -> str:
    """The fleet in one line."""
    sync, limits = status.sync, status.rate_limits
    live = sum(not worker.silent for worker in status.workers)
    working = sum(account.worker is not None for account in status.accounts)
    parts = [
        f"{count_of(live, 'worker')}, {working}/{count_of(len(status.accounts), 'account')}",
        _state_words(sync),
        f"Calls: {status.activity.total:,}/{status.activity.window_minutes}m",
        "Limits: " + (f"RESTRICTED ({len(limits.active_waits)})" if limits.restricted else "OK"),
        f"Channels: {share_of(sync.channels_scanned, sync.channels_total)}",
        f"Sets: {_done(sync):,}/{sync.sets_total:,}",
    ]
    if sync.bytes_per_second:
        parts.append(f"{size(sync.bytes_per_second)}/s")
    if failed := sync.sets.get("failed"):
        parts.append(f"{failed:,} failed")
    return " | ".join(parts)


def full_view(status: FleetStatus) -> Group:
    """Everything, section by section."""
    return Group(*_sections(status))


def out_of_date(view: Group, reason: str) -> Group:
    """The last view, and why there is no newer one."""
    return Group(Text(reason, "bold red"), Text(), view)


def _sections(status: FleetStatus) -> Iterator[RenderableType]:
    yield _headline(status)
    yield from _section("Accounts", accounts_table(status))
    yield from _section("Workers", workers_table(status))
    activity = status.activity
    failed = f", {activity.failed:,} failed" if activity.failed else ""
    heading = Text.assemble(
        ("API activity", "bold"),
        (f"  last {activity.window_minutes} minutes: {count_of(activity.total, 'call')}{failed}", "dim"),
    )
    yield from _section(heading, activity_table(status))
    restricted = status.rate_limits.restricted
    verdict = ("RESTRICTED", "bold yellow") if restricted else ("OK", "green")
    yield from _section(
        Text.assemble(("Rate limits", "bold"), "  ", verdict), *limits_tables(status.rate_limits)
    )
    yield from _section("Progress", *progress_tables(status.sync))
    yield from _section("Paused", pauses_table(status.sync))
    yield from _section("Waiting", waiting_table(status.sync))


def _section(heading: str | Text, *bodies: RenderableType | None) -> Iterator[RenderableType]:
    present = [body for body in bodies if body is not None]
    if isinstance(heading, str):
        if not present:
            return
        heading = Text(heading, "bold")
    yield Text()
    yield heading
    for body in present:
        yield Padding(body, (0, 0, 0, 2))


def _headline(status: FleetStatus) -> Text:
    sync = status.sync
    style = _STATE_STYLES[sync.state]
    return Text.assemble(
        ("Archive Fleet", "bold"),
        "  ",
        ("● ", style),
        (_state_words(sync), f"bold {style}"),
        (f"  {status.at:%Y-%m-%d %H:%M:%S} {status.at.tzname() or ''}".rstrip(), "dim"),
    )


def _state_words(sync: Sync) -> str:
    words = str(sync.state)
    if sync.state is SyncState.PAUSED and sync.current:
        words += f", {count_of(len(sync.current), 'set')} finishing"
    if sync.resumes_in is not None:
        words += f", resumes in {duration(sync.resumes_in)}"
    return words


def _done(sync: Sync) -> int:
    return sum(sync.sets.get(state, 0) for state in ("indexed", "published", "duplicate", "skipped"))
