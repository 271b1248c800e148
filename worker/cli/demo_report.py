"""What the demo did: each archive's fate, the proof, and where to go from here."""

from __future__ import annotations

import io
import sys
from dataclasses import asdict
from itertools import groupby
from typing import TYPE_CHECKING

import click
from rich.cells import cell_len
from rich.text import Text

from worker.cli.fitting import cut, padded, wrapped
from worker.cli.terminal import open_console
from worker.demo.run import SEARCH
from worker.plain_text import plain, unguarded
from worker.status.wording import count_of, size

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from worker.demo.run import DemoResult
    from worker.store.overview import SetOutcome

_STYLES = {
    "indexed": "green",
    "duplicate": "cyan",
    "failed": "red",
    "ready": "yellow",
    "collecting": "yellow",
    "skipped": "magenta",
}
_WORDS = {"collecting": "waits", "ready": "waits", "claimed": "under way", "skipped": "left out"}
_NAME_CELLS = 24
_SIZE_CELLS = len("99.9 MB")
# What becomes of most archives fits beside their names; a longer word about one goes below it.
_FATE_CELLS = len("package 12: 3 files, split into 5")


def document(result: DemoResult) -> dict[str, object]:
    """The same for programs."""
    return {
        "archives": len(result.outcomes),
        "published": result.published,
        "duplicates": result.duplicates,
        "waiting": [_reason(outcome) for outcome in result.in_state("collecting", "ready", "claimed")],
        "failed": [_reason(outcome) for outcome in result.in_state("failed")],
        "skipped": [_reason(outcome) for outcome in result.in_state("skipped")],
        "new": result.new,
        "split_parts": result.split_parts,
        "bytes_moved": result.bytes_moved,
        "bytes_avoided": result.bytes_avoided,
        "seconds": round(result.seconds, 2),
        "ledger": asdict(result.ledger),
    }


def _reason(outcome: SetOutcome) -> dict[str, str | None]:
    return {"archive": outcome.name, "channel": outcome.channel, "reason": outcome.reason}


def printed(*parts: Callable[[int], Iterator[Text]]) -> None:
    """Show lines that are made for the width there is."""
    console = open_console()
    written = io.StringIO()
    # In one piece: whoever reads the first lines only, such as `head`, has got all of it by then.
    paper = open_console(
        file=written,
        width=console.width,
        force_terminal=console.is_terminal,
        color_system=console.color_system,
        soft_wrap=True,
        highlight=False,
    )
    for part in parts:
        for line in part(console.width):
            paper.print(line)
    click.echo(written.getvalue(), nl=False, file=unguarded(sys.stdout))


def report(result: DemoResult, width: int) -> Iterator[Text]:
    """What became of each archive, and the proof, in lines of at most ``width`` cells."""
    yield from outcome_lines(result.outcomes, width)
    yield Text()
    yield from _paragraph(_sum(result), width)
    yield Text()
    yield from _paragraph(f"Which of them hold {SEARCH}? Among others:", width)
    for found in result.found:
        inside = ", ".join(plain(path) for path in found.paths)
        yield Text(cut(f"  {plain(found.package.name)}: {inside}", width))
    yield Text()
    ledger = result.ledger
    style = "bold green" if result.is_proven else "bold red"
    yield from _paragraph(
        f"The server's own ledger: {ledger.unique_contents} contents belong at the destination,"
        f" {ledger.message_sets} are there whole; {ledger.doubled} doubled, {ledger.lost} lost,"
        f" {ledger.unexpected} unexpected.",
        width,
        style,
    )


def what_next(commands: Sequence[str], log: str, width: int) -> Iterator[Text]:
    """Where to look; commands and the log's path stay whole."""
    yield Text()
    yield Text(f"The log is in {log}")
    yield from _paragraph("Run it again, and there is nothing left to do. Look around:", width)
    for command in commands:
        yield Text(f"  {command}", "bold")
    yield from _paragraph("docs/guide.md leads to your own channels.", width)


def outcome_lines(outcomes: Iterable[SetOutcome], width: int) -> Iterator[Text]:
    """Channel by channel, in the order of posting; names are cut where they have to be, fates never."""
    outcomes = list(outcomes)
    longest = max((cell_len(plain(outcome.name)) for outcome in outcomes), default=0)
    beside_fates, alone = width - 6 - _SIZE_CELLS - _FATE_CELLS, width - 4 - _SIZE_CELLS
    # A name keeps what tells it from others, even where its fate has to go below.
    room = min(longest, max(beside_fates, min(_NAME_CELLS, alone)))
    for channel, posted in groupby(outcomes, key=lambda outcome: outcome.channel):
        yield Text(cut(plain(channel), width), "bold")
        for outcome in posted:
            yield from _outcome(outcome, room, width)


def _outcome(outcome: SetOutcome, room: int, width: int) -> Iterator[Text]:
    style = _STYLES.get(outcome.state, "")
    head = f"  {padded(plain(outcome.name), room)}  {size(outcome.size):>{_SIZE_CELLS}}"
    fate = _fate(outcome)
    if cell_len(head) + 2 + cell_len(fate) <= width:
        yield Text.assemble(head, "  ", (fate, style))
        return
    yield Text(cut(head, width))
    for line in wrapped(fate, width, "      ", keep=plain(outcome.name)):
        yield Text(line, style)


def _fate(outcome: SetOutcome) -> str:
    """One phrase: how it ended, as what, and what is special about it."""
    if outcome.package_id is None:
        word = _WORDS.get(outcome.state, outcome.state)
        # A reason says itself that it waits.
        reason = plain(outcome.reason or "")
        return reason if reason.startswith(word) else f"{word}: {reason}" if reason else word
    if outcome.state == "duplicate":
        return f"the same as package {outcome.package_id}"
    told = [count_of(outcome.file_count, "file")] if outcome.file_count else []
    if outcome.is_split:
        told.append(f"split into {outcome.message_count}")
    elif outcome.part_count > 1:
        told.append(f"{outcome.part_count} parts")
    told += outcome.marks or []
    if outcome.state != "indexed":
        told.append("listing to come")
    return f"package {outcome.package_id}" + (f": {', '.join(told)}" if told else "")


def _sum(result: DemoResult) -> str:
    if result.bytes_moved is None:
        return f"{_counts(result, result.new)}. {size(result.bytes_avoided)} not uploaded twice."
    if not (result.new or result.bytes_moved):
        return "Nothing to do: every archive was dealt with before."
    seen = len(result.outcomes)
    since = "" if result.new == seen else f" ({result.new} since the last run)"
    return (
        f"{_counts(result, seen)}{since}. {size(result.bytes_moved)} moved in {result.seconds:.1f} s,"
        f" {size(result.bytes_avoided)} avoided."
    )


def _counts(result: DemoResult, seen: int) -> str:
    """What became of all that was seen; it adds up."""
    ends = {
        "published": result.published,
        "duplicates": result.duplicates,
        "waiting": len(result.in_state("collecting", "ready", "claimed")),
        "left out": len(result.in_state("skipped")),
        "failed": len(result.in_state("failed")),
    }
    return f"{seen} archives seen: " + ", ".join(f"{count} {end}" for end, count in ends.items() if count)


def _paragraph(words: str, width: int, style: str = "") -> Iterator[Text]:
    for line in wrapped(words, width):
        yield Text(line, style)
