"""The tables of the status, each from its part of the read model; None where there is nothing to say."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.progress_bar import ProgressBar
from rich.table import Column, Table
from rich.text import Text

from worker.cli.opening import as_called
from worker.status.wording import count_of, duration, size

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rich.console import RenderableType

    from worker.status.model import AccountStatus, CurrentSet, FleetStatus, RateLimits, Sync

_SET_STYLES = {"indexed": "green", "published": "green", "failed": "red", "claimed": "cyan"}
_SET_ORDER = ("indexed", "published", "duplicate", "claimed", "ready", "collecting", "failed", "skipped")
_METHODS_SHOWN = 8
_BAR_WIDTH = 24


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


def _bar(share: float, width: int) -> ProgressBar:
    return ProgressBar(
        total=1, completed=share, width=width, style="black", complete_style="cyan", finished_style="cyan"
    )


def accounts_table(status: FleetStatus) -> RenderableType | None:
    """Who there is, in which state, run by whom."""
    if not status.accounts:
        return Text(as_called("none yet; add one: worker accounts add PHONE"), "dim")
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


def workers_table(status: FleetStatus) -> RenderableType | None:
    """The processes."""
    if not status.workers:
        return Text(as_called("none runs; start one: worker run"), "dim")
    table = _grid("worker", ">up", ">memory", ">accounts", ">heartbeat", "version", headers=True)
    for worker in status.workers:
        style = "red" if worker.silent else ""
        beat = Text(f"{duration(worker.heartbeat_age)} ago", style)
        up, memory = duration(worker.uptime), size(worker.memory_bytes)
        table.add_row(Text(worker.label, style), up, memory, str(worker.accounts), beat, worker.version)
    return table


def activity_table(status: FleetStatus) -> RenderableType | None:
    """Calls by method, the most frequent first."""
    by_method = status.activity.by_method
    if not by_method:
        return None
    table = _grid("method", ">calls", "share")
    shown = sorted(by_method.items(), key=lambda item: -item[1])
    most = max(1, shown[0][1])
    for method, calls in shown[:_METHODS_SHOWN]:
        bar = _bar(calls / most, _BAR_WIDTH)
        table.add_row(Text(method), f"{calls:,}", bar)
    if rest := shown[_METHODS_SHOWN:]:
        table.add_row(Text(f"{len(rest)} more", "dim"), f"{sum(calls for _, calls in rest):,}", "")
    return table


def limits_tables(limits: RateLimits) -> Iterator[RenderableType]:
    """Waits in force, escalations, and what goes slower than it could."""
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


def progress_tables(sync: Sync) -> Iterator[RenderableType]:
    """How far everything is, and each set under way."""
    facts = Table.grid(Column(min_width=10), Column(overflow="fold"))
    facts.add_row(Text("Channels", "dim"), f"{share_of(sync.channels_scanned, sync.channels_total)} scanned")
    facts.add_row(Text("Messages", "dim"), f"{sync.messages_scanned:,} scanned")
    facts.add_row(Text("Sets", "dim"), _sets(sync))
    yield facts
    if not sync.current:
        return
    table = _grid("account", "step", "set", "", ">", ">speed", ">left", grow=2)
    table.expand = True
    for item in sync.current:
        bar = _bar(item.share, _BAR_WIDTH // 2)
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


def pauses_table(sync: Sync) -> RenderableType | None:
    """What a person let rest."""
    if not sync.pauses:
        return None
    table = _grid("what", "until", "by")
    for pause in sync.pauses:
        until = "until resumed" if pause.resumes_in is None else f"resumes in {duration(pause.resumes_in)}"
        by = Text(f"by {pause.by}" if pause.by else "", "dim")
        table.add_row(Text(pause.what, "yellow"), until, by)
    return table


def waiting_table(sync: Sync) -> RenderableType | None:
    """What does not move, and why."""
    in_line = sync.sets.get("ready", 0) - sync.held_back
    more = sync.held_back - sum(item.kind == "set" and item.resumes_in is not None for item in sync.waiting)
    table = Table(box=None, show_header=False, padding=(0, 2, 0, 0), pad_edge=False)
    table.add_column(overflow="fold", max_width=40)
    table.add_column(overflow="fold", ratio=1)
    table.add_column(justify="right", no_wrap=True)
    for item in sync.waiting:
        left = "" if item.resumes_in is None else f"in {duration(item.resumes_in)}"
        table.add_row(Text(item.what), Text(as_called(item.why), "dim"), Text(left, "yellow"))
    if more > 0:
        table.add_row(Text(f"{count_of(more, 'more set')}"), Text("held back", "dim"), "")
    if in_line > 0:
        table.add_row(Text(count_of(in_line, "set")), Text("next in line", "dim"), "")
    return table if table.rows else None


def share_of(done: int, total: int) -> str:
    """``45/128 (35%)``."""
    return f"{done:,}/{total:,}" + (f" ({done / total:.0%})" if total else "")
