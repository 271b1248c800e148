"""What ``worker run`` and ``worker recover`` share: a process that works, and a report of what it did."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import click

from worker.cli.processes import process_at
from worker.fleet.scheduler import run_fleet
from worker.plain_text import plain
from worker.status.wording import duration
from worker.store.overview import WaitingSet, count_sets, waiting_sets

if TYPE_CHECKING:
    from collections.abc import Sequence

    from worker.cli.opening import Opened
    from worker.fleet.account import Mode, Report

_GOOD = {"finished", "stopped", "elsewhere"}


@dataclass(frozen=True, slots=True)
class Worked:
    """How each account's run ended, and how the sets stand after it."""

    reports: list[Report]
    counts: dict[str, int]
    waiting: list[WaitingSet]

    @property
    def exit_code(self) -> int:
        return 0 if all(report.outcome in _GOOD for report in self.reports) else 1

    def print(self) -> None:
        """For a person."""
        for report in self.reports:
            done = [
                f"{kind.value} {outcome}: {count}"
                for (kind, outcome), count in sorted(report.findings.counts.items())
            ]
            detail = "; ".join([*done, *([report.reason] if report.reason else [])])
            click.echo(
                plain(f"account {report.account_id}: {report.outcome}{f' ({detail})' if detail else ''}")
            )
        click.echo(
            "sets: " + (", ".join(f"{n} {state}" for state, n in sorted(self.counts.items())) or "none")
        )
        for item in self.waiting:
            when = f", again in {duration(max(1.0, item.seconds))}" if item.seconds else ""
            why = item.reason or "next in line"
            click.echo(plain(f"  {item.name} in {item.channel}: {item.state}{when} — {why}"))


async def work(place: Opened, mode: Mode, phones: Sequence[str]) -> Worked:
    """Run the fleet's accounts in this process until ``mode`` is satisfied."""
    async with process_at(place) as process:
        reports = await run_fleet(process, mode, phones)
        return Worked(reports, await count_sets(process.database), await waiting_sets(process.database))
