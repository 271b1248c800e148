"""The status for eyes: sections that are there only if there is something to say in them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.console import Group
from rich.padding import Padding
from rich.progress_bar import ProgressBar
from rich.table import Column, Table
from rich.text import Text

from worker.status.model import SyncState
from worker.status.wording import count_of, duration, size

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rich.console import RenderableType

    from worker.status.model import AccountStatus, CurrentSet, FleetStatus, RateLimits, Sync

_STATE_STYLES = {
    SyncState.RUNNING: "green",
    SyncState.IDLE: "green",
    SyncState.WAITING: "yellow",
    SyncState.PAUSED: "yellow",
    SyncState.STOPPED: "red",
}
_SET_STYLES = {"indexed": "green", "published": "green", "failed": "red", "claimed": "cyan"}
_SET_ORDER = ("indexed", "published", "duplicate", "claimed", "ready", "collecting", "failed", "skipped")
_METHODS_SHOWN = 8
_BAR_WIDTH = 24


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
        f"Channels: {_of(sync.channels_scanned, sync.channels_total)}",
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
    yield from _section("Accounts", _accounts(status))
    yield from _section("Workers", _workers(status))
    activity = status.activity
    failed = f", {activity.failed:,} failed" if activity.failed else ""
    heading = Text.assemble(
        ("API activity", "bold"),
        (f"  last {activity.window_minutes} minutes: {count_of(activity.total, 'call')}{failed}", "dim"),
    )
    yield from _section(heading, _activity(status))
    restricted = status.rate_limits.restricted
    verdict = ("RESTRICTED", "bold yellow") if restricted else ("OK", "green")
    yield from _section(Text.assemble(("Rate limits", "bold"), "  ", verdict), *_limits(status.rate_limits))
    yield from _section("Progress", *_progress(status.sync))
    yield from _section("Paused", _pauses(status.sync))
    yield from _section("Waiting", _waiting(status.sync))


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


def _grid(*columns: str, headers: bool = False, grow: int | None = None) -> Table:
    """A table without lines; a name that begins with ``>`` is set to the right, one column may give way."""
    table = Table(box=None, show_header=headers, header_style="dim", padding=(0, 2, 0, 0), pad_edge=False)
    for number, name in enumerate(columns):
        right = name.startswith(">")
        table.add_column(
            name.lstrip(">"),
            justify="right" if right else "left",
            no_wrap=True,
            overflow="ellipsis",
            ratio=1 if number == grow else None,
        )
    return table


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


def _accounts(status: FleetStatus) -> RenderableType | None:
    if not status.accounts:
        return Text("none yet; add one: worker accounts add PHONE", "dim")
    doing = {item.account_id: item for item in reversed(status.sync.current)}
    table = _grid(">#", "account", "phone", "", "state", "run by", headers=True)
    for account in status.accounts:
        name = Text(account.name)
        if account.username and account.username != account.name:
            name.append(f" @{account.username}", "dim")
        premium = Text("Premium", "magenta") if account.premium else Text()
        state = _account_state(account, doing.get(account.id))
        number, phone, worker = (
            Text(text, "dim") for text in (str(account.id), account.phone, account.worker or "—")
        )
        table.add_row(number, name, phone, premium, state, worker)
    return table


def _account_state(account: AccountStatus, current: CurrentSet | None) -> Text:
    if account.state != "ready":
        return Text.assemble(("● ", "red"), account.state.replace("_", " "))
    if account.paused:
        finishing = f"finishing {current.step} {current.share:.0%}" if current else "paused"
        return Text.assemble(("● ", "yellow"), finishing)
    if account.worker is None:
        return Text.assemble(("○ ", "dim"), "ready")
    if current is None:
        return Text.assemble(("● ", "green"), "connected")
    return Text.assemble(("● ", "green"), f"{current.step} {current.share:.0%}")


def _workers(status: FleetStatus) -> RenderableType | None:
    if not status.workers:
        return Text("none runs; start one: worker run", "dim")
    table = _grid("worker", ">up", ">memory", ">accounts", ">heartbeat", "version", headers=True)
    for worker in status.workers:
        style = "red" if worker.silent else ""
        beat = Text(f"{duration(worker.heartbeat_age)} ago", style)
        up, memory = duration(worker.uptime), size(worker.memory_bytes)
        table.add_row(Text(worker.label, style), up, memory, str(worker.accounts), beat, worker.version)
    return table


def _activity(status: FleetStatus) -> RenderableType | None:
    by_method = status.activity.by_method
    if not by_method:
        return None
    table = _grid("method", ">calls", "share")
    shown = sorted(by_method.items(), key=lambda item: -item[1])
    most = shown[0][1]
    for method, calls in shown[:_METHODS_SHOWN]:
        bar = ProgressBar(total=most, completed=calls, width=_BAR_WIDTH, complete_style="cyan", style="black")
        table.add_row(Text(method), f"{calls:,}", bar)
    if rest := shown[_METHODS_SHOWN:]:
        table.add_row(Text(f"{len(rest)} more", "dim"), f"{sum(calls for _, calls in rest):,}", "")
    return table


def _limits(limits: RateLimits) -> Iterator[RenderableType]:
    if limits.active_waits:
        table = _grid("account", "method", "where", ">wait", ">clears in", headers=True)
        for wait in limits.active_waits:
            where = f"chat {wait.chat}" if wait.chat else "everywhere"
            left = Text(duration(wait.clears_in), "bold yellow")
            table.add_row(Text(wait.account), Text(wait.method), where, duration(wait.wait_seconds), left)
        yield table
    for item in limits.escalations:
        yield Text(
            f"escalated {duration(item.age)} ago: {item.method} of {item.account} was refused"
            f" {item.floods} times and rests {duration(item.extra_seconds)} longer",
            "yellow",
        )
    for slowed in limits.slowed:
        yield Text(f"{slowed.method} of {slowed.account} goes {slowed.factor:.1f} times slower", "dim")


def _progress(sync: Sync) -> Iterator[RenderableType]:
    facts = Table.grid(Column(min_width=10), Column(overflow="fold"))
    facts.add_row(Text("Channels", "dim"), f"{_of(sync.channels_scanned, sync.channels_total)} scanned")
    facts.add_row(Text("Messages", "dim"), f"{sync.messages_scanned:,} scanned")
    facts.add_row(Text("Sets", "dim"), _sets(sync))
    yield facts
    if not sync.current:
        return
    table = _grid("account", "step", "set", "", ">", ">speed", ">left", grow=2)
    table.expand = True
    for item in sync.current:
        bar = ProgressBar(total=1, completed=item.share, width=_BAR_WIDTH // 2, style="black")
        speed = "" if item.bytes_per_second is None else f"{size(item.bytes_per_second)}/s"
        left = "" if item.eta is None else duration(item.eta)
        name = Text(item.name).append(f"  {item.channel}", "dim")
        table.add_row(
            Text(item.account), Text(item.step, "cyan"), name, bar, f"{item.share:.0%}", speed, left
        )
    yield Text()
    yield table


def _sets(sync: Sync) -> Text:
    if not sync.sets:
        return Text("none found yet", "dim")
    text = Text()
    for state in _SET_ORDER:
        if number := sync.sets.get(state, 0):
            text.append(" · " if text else "", "dim")
            text.append(f"{number:,} {state}", _SET_STYLES.get(state, ""))
    return text


def _pauses(sync: Sync) -> RenderableType | None:
    if not sync.pauses:
        return None
    table = _grid("what", "until", "by")
    for pause in sync.pauses:
        until = "until resumed" if pause.resumes_in is None else f"resumes in {duration(pause.resumes_in)}"
        by = Text(f"by {pause.by}" if pause.by else "", "dim")
        table.add_row(Text(pause.what, "yellow"), until, by)
    return table


def _waiting(sync: Sync) -> RenderableType | None:
    in_line = sync.sets.get("ready", 0) - sync.held_back
    more = sync.held_back - sum(item.kind == "set" and item.resumes_in is not None for item in sync.waiting)
    table = Table(box=None, show_header=False, padding=(0, 2, 0, 0), pad_edge=False)
    table.add_column(overflow="fold", max_width=40)
    table.add_column(overflow="fold", ratio=1)
    table.add_column(justify="right", no_wrap=True)
    for item in sync.waiting:
        left = "" if item.resumes_in is None else f"in {duration(item.resumes_in)}"
        table.add_row(Text(item.what), Text(item.why, "dim"), Text(left, "yellow"))
    if more > 0:
        table.add_row(Text(f"{count_of(more, 'more set')}"), Text("held back", "dim"), "")
    if in_line > 0:
        table.add_row(Text(count_of(in_line, "set")), Text("next in line", "dim"), "")
    return table if table.rows else None


def _done(sync: Sync) -> int:
    return sum(sync.sets.get(state, 0) for state in ("indexed", "published", "duplicate", "skipped"))


def _of(done: int, total: int) -> str:
    return f"{done:,}/{total:,}" + (f" ({done / total:.0%})" if total else "")
