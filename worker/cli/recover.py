"""``worker recover``: what to run after a crash, and whenever something looks wrong."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import click

from worker.cli.errand import ShownCounter, shown
from worker.cli.opening import Opened, opened, person, readable_errors, upgrade_embedded
from worker.cli.processes import process_at
from worker.errors import UserError
from worker.fleet.account import Mode
from worker.fleet.asking import Wish, fulfil
from worker.fleet.giving_up import end_the_rest, wait_no_longer
from worker.fleet.scheduler import run_fleet, sweep_leftovers
from worker.plain_text import plain, to_json
from worker.recovery.account import Extent
from worker.recovery.findings import Findings, Kind
from worker.recovery.leftovers import look_at_leftovers
from worker.store.accounts import find_account, ready_accounts
from worker.store.given_up import begun_with, decide_to_give_up
from worker.store.missing_packages import held_channels
from worker.store.open_intents import begun_by
from worker.store.reach import holder_of, title_of
from worker.store.remains import remains_behind
from worker.store.removals import unsettled_behind

if TYPE_CHECKING:
    from collections.abc import Sequence

    from worker.fleet.account import Report
    from worker.fleet.process import Process
    from worker.store.database import Database
    from worker.store.open_intents import Begun

_GOOD = {"finished", "stopped", "elsewhere"}


@dataclass(frozen=True, slots=True)
class Recovered:
    """What was found, and how each account's part of it ended."""

    findings: Findings
    reports: list[Report]
    dry_run: bool

    @property
    def exit_code(self) -> int:
        return 0 if all(report.outcome in _GOOD for report in self.reports) else 1

    def document(self) -> dict[str, object]:
        """For ``--json``."""
        accounts = [
            {"account": report.account_id, "outcome": report.outcome, "reason": report.reason}
            for report in self.reports
        ]
        return {"dry_run": self.dry_run, **self.findings.document(), "accounts": accounts}

    def print(self) -> None:
        """For a person: every kind with its figures, then what has a name."""
        if self.dry_run:
            click.echo("dry run: nothing is changed")
        for kind in Kind:
            counts = {o: n for (of, o), n in self.findings.counts.items() if of is kind}
            figures = ", ".join(f"{count} {outcome}" for outcome, count in sorted(counts.items()))
            click.echo(f"{kind.value}: {figures or 'nothing to do'}")
        for item in self.findings.listed:
            click.echo(plain(f"  {item.what}: {item.outcome}"))
        for report in self.reports:
            if report.outcome not in _GOOD:
                click.echo(plain(f"account {report.account_id}: {report.outcome} ({report.reason})"))


@click.command()
@click.option("--dry-run", is_flag=True, help="Say what is wrong and what would be done; change nothing.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.option("--take-over", metavar="ACCOUNT", help="Let others finish what this account has begun.")
@click.option("--full", is_flag=True, help="Read the destination from its first message on.")
@click.option("--accept-missing", is_flag=True, help="What is missing at a destination is gone on purpose.")
@click.option(
    "--give-up",
    "give_up",
    metavar="SET",
    type=int,
    multiple=True,
    help="End what this set has begun, or waits to have taken back, and nobody can finish; repeatable.",
)
@click.option("--account", "phones", multiple=True, metavar="PHONE", help="Only this account; repeatable.")
def recover(
    *,
    dry_run: bool,
    as_json: bool,
    take_over: str | None,
    full: bool,
    accept_missing: bool,
    give_up: tuple[int, ...],
    phones: tuple[str, ...],
) -> None:
    """Put right what a crash left: dead claims, begun uploads, pending metadata, files.

    Packages are compared with the destination as well: messages that are gone, that no row knows, or that
    stand there twice; for those, the destination is read above what was settled before. Safe beside a running
    fleet: accounts that another worker runs are left to it. A dry run signs in to look, and writes down
    nothing but that it did.

    \b
    Examples:
      worker recover
      worker recover --dry-run --json
      worker recover --full
      worker recover --take-over +10000000001
      worker recover --accept-missing
      worker recover --give-up 42
    """
    with readable_errors(), opened() as place:
        if not dry_run:
            upgrade_embedded(place)
        with shown(quiet=as_json, of_bytes=False) as counter:
            extent = Extent(
                thorough=True,
                dry_run=dry_run,
                full=full,
                accept_missing=accept_missing,
                progress=counter.progress,
            )
            recovered = asyncio.run(_recover(place, take_over, give_up, phones, extent, counter))
        if as_json:
            click.echo(to_json(recovered.document()))
        else:
            recovered.print()
        raise SystemExit(recovered.exit_code)


async def _recover(
    place: Opened,
    take_over: str | None,
    give_up: Sequence[int],
    phones: Sequence[str],
    extent: Extent,
    counter: ShownCounter,
) -> Recovered:
    dry_run = extent.dry_run
    async with process_at(place) as process:
        known = process.database
        asked = () if take_over is None else ((await find_account(known, take_over)).id,)
        findings = await _sweep(process, dry_run=dry_run)
        behind = [set_id for set_id in dict.fromkeys(give_up) if await _is_behind(process, set_id)]
        begun = [set_id for set_id in dict.fromkeys(give_up) if set_id not in behind]
        given_up = await _decide(known, begun, findings, dry_run=dry_run)
        extent = replace(extent, take_over=asked)
        reports = []
        # What is given up ends without an account, if there is none.
        if not give_up or await ready_accounts(known):
            reports = await run_fleet(process, Mode(once=True, new_work=False, recovery=extent), phones)
        for report in reports:
            findings.merge(report.findings)
            if report.outcome == "elsewhere":
                holder = await holder_of(known, report.account_id) or "it has just begun"
                findings.note(Kind.ACCOUNT, f"account {report.account_id}", f"left to its worker: {holder}")
        if reports and all(report.outcome == "elsewhere" for report in reports):
            findings.merge(await _ask_a_worker(process, extent, counter))
        if extent.accept_missing and not dry_run:
            await _have_accepted(process, extent, findings, counter)
        await wait_no_longer(process, behind, _decision(), findings, dry_run=dry_run)
        if not dry_run:
            await end_the_rest(process, given_up, findings)
            await _note_what_stays(known, findings, asked)
    return Recovered(findings, reports, dry_run)


async def _decide(
    known: Database, set_ids: Sequence[int], findings: Findings, *, dry_run: bool
) -> list[Begun]:
    """Write the person's decision down before anything is done about it."""
    decided = []
    for set_id in set_ids:
        if dry_run:
            begun = await begun_with(known, set_id)
            sent = f"{begun.sent_count} of {begun.part_count} parts recorded"
            findings.note(Kind.UPLOAD, begun.set_name, f"to be given up: {sent}")
        else:
            decided.append(await decide_to_give_up(known, set_id, _decision()))
    return decided


def _decision() -> str:
    return f"given up by {person()}"


async def _is_behind(process: Process, set_id: int) -> bool:
    """Whether the set has begun nothing itself, and waits for what is left of its content."""
    if await unsettled_behind(process.database, set_id) is not None:
        return True
    if not process.settings.fleet.republish_deleted:
        return False
    return await remains_behind(process.database, set_id) is not None


async def _sweep(process: Process, *, dry_run: bool) -> Findings:
    findings = Findings()
    if dry_run:
        silent = process.settings.lease.lease_secs
        swept = await look_at_leftovers(process.database, process.workspace, silent_seconds=silent)
    else:
        swept = await sweep_leftovers(process)
    findings.add(Kind.RUN, "to be closed" if dry_run else "closed", swept.runs_closed)
    findings.add(Kind.CLAIM, "to be released" if dry_run else "released", swept.claims_released)
    findings.add(Kind.FOLDER, "to be removed" if dry_run else "removed", swept.folders_removed)
    findings.add(Kind.SPACE, "to be given back" if dry_run else "given back", swept.reservations_dropped)
    return findings


async def _have_accepted(process: Process, extent: Extent, findings: Findings, counter: ShownCounter) -> None:
    """What is held up still is accepted by an account that sees all of it, wherever that one is run."""
    for channel_id in sorted(await held_channels(process.database)):
        try:
            findings.merge(await _ask_a_worker(process, extent, counter, whole=[channel_id]))
        except UserError as error:
            title = await title_of(process.database, channel_id)
            findings.note(Kind.PACKAGE, title, f"not accepted: {error}")


async def _ask_a_worker(
    process: Process, extent: Extent, counter: ShownCounter, *, whole: Sequence[int] = ()
) -> Findings:
    """No account is free: one of the workers looks, between what it does anyway.

    ``whole``: it has to see all of these channels.
    """
    arguments = {
        "dry_run": extent.dry_run,
        "take_over": list(extent.take_over),
        "full": extent.full,
        "accept_missing": extent.accept_missing,
    }
    wish = Wish(
        kind="recover",
        channels=whole,
        arguments=lambda: arguments,
        asked_by=person(),
        whole=bool(whole),
        dry=extent.dry_run,
    )
    return Findings.of_document(await fulfil(process, wish, counter))


async def _note_what_stays(known: Database, findings: Findings, asked: tuple[int, ...]) -> None:
    """What nobody could take over stays where it is, and a person should hear of it."""
    for account_id in asked:
        holder = await holder_of(known, account_id)
        why = f"{holder} runs the account" if holder else "no other account may post there and has the bytes"
        for begun in await begun_by(known, account_id, at_once=True, claimed=True):
            end = f"to end it: worker recover --give-up {begun.set_id}"
            findings.note(Kind.UPLOAD, begun.set_name, f"not taken over: {why} — {end}")
