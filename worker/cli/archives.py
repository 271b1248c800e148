"""``worker archives``: what the fleet would make of files on disk."""

from __future__ import annotations

import asyncio
import contextlib
import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from worker.archives.nursery import Examination, Nursery
from worker.archives.reader import FileReader, Part, SetBytes
from worker.domain.archive_set import ArchiveSet, PostedFile
from worker.domain.forming import stands_alone, without_spares
from worker.domain.grouping import group
from worker.domain.listing import LOCAL, Mark
from worker.domain.split_plan import PREMIUM_LIMIT, STANDARD_LIMIT, OriginalFile, split_plan
from worker.errors import RetryableError
from worker.plain_text import plain, to_json

if TYPE_CHECKING:
    from collections.abc import Iterator

SHOWN_ENTRIES = 20
AT_ONCE = 2


@dataclass(frozen=True, slots=True)
class Inspected:
    """One set with everything the fleet would know about it."""

    found: ArchiveSet
    examination: Examination

    @property
    def complete(self) -> bool:
        return self.found.gapless and self.examination.completeness.complete

    @property
    def missing(self) -> list[str]:
        proven = [self.found.name_of(index) for index in self.examination.completeness.missing]
        return list(dict.fromkeys([*self.found.missing, *proven]))

    @property
    def unproven(self) -> list[str]:
        return [self.found.parts[place].file_name for place in self.examination.completeness.unproven]

    @property
    def marks(self) -> list[str]:
        marks = set(self.examination.listing.candid_marks)
        if not self.complete:
            marks.add(Mark.INCOMPLETE)
        elif self.unproven:
            marks.add(Mark.UNPROVEN)
        return sorted(marks)

    @property
    def state(self) -> str:
        if self.complete:
            return "no part is missing, but not every part is proven" if self.unproven else "complete"
        return f"incomplete, missing {', '.join(self.missing)}" if self.missing else "incomplete"


@dataclass(slots=True)
class Findings:
    """What became of all the files; those that failed or were ignored by path and reason."""

    inspected: list[Inspected] = field(default_factory=list)
    failed: list[tuple[str, str]] = field(default_factory=list)
    ignored: list[tuple[str, str]] = field(default_factory=list)


@click.group("archives")
def archives() -> None:
    """Look at archives on disk the way the fleet does."""


@archives.command("inspect")
@click.argument("files", metavar="FILE...", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
@click.pass_context
def inspect(context: click.Context, files: tuple[Path, ...], *, as_json: bool) -> None:
    """Group FILES into archive sets; show whether each is complete, what is inside and how it would be split.

    The files are read, never changed. The exit code is 1 if a file could not be read; that an archive is
    damaged or incomplete is an answer, and the code is 0.

    \b
    Examples:
      worker archives inspect photos.part1.rar photos.part2.rar
      worker archives inspect --json *.zip
    """
    posted, paths, refused = _as_posted(files)
    findings = asyncio.run(_inspect_all(posted, paths))
    refused += findings.failed
    for path, reason in refused:
        click.echo(plain(f"{path}: {reason}"), err=True)
    if as_json:
        ignored = [*refused, *findings.ignored]
        document = {
            "sets": [_set_json(item) for item in findings.inspected],
            "ignored": [{"file": file, "reason": reason} for file, reason in ignored],
        }
        click.echo(to_json(document))
    else:
        for item in findings.inspected:
            _print_set(item)
        for file, reason in findings.ignored:
            click.echo(plain(f"{file}: ignored, {reason}"))
    if refused:
        context.exit(1)


def _as_posted(files: tuple[Path, ...]) -> tuple[list[PostedFile], dict[int, Path], list[tuple[str, str]]]:
    """Treat the files as messages of one poster, each folder as a topic of its own."""
    posted: list[PostedFile] = []
    paths: dict[int, Path] = {}
    refused: list[tuple[str, str]] = []
    folders: dict[Path, int] = {}
    seen: set[Path] = set()
    for number, path in enumerate(files, start=1):
        reason = _unusable(path)
        resolved = path if reason else path.resolve()
        if not reason and resolved in seen:
            reason = "given twice"
        if reason:
            refused.append((str(path), reason))
            continue
        seen.add(resolved)
        folder = folders.setdefault(resolved.parent, len(folders))
        posted.append(PostedFile(number, number, path.name, path.stat().st_size, 0, topic_id=folder))
        paths[number] = path
    return posted, paths, refused


def _unusable(path: Path) -> str:
    try:
        if not path.exists():
            return "there is no such file"
        if path.is_dir():
            return "this is a directory; give the files in it"
        if not path.is_file() or not os.access(path, os.R_OK):
            return "it may not be read; check that it is a plain file, and its permissions"
        if path.stat().st_size == 0:
            return "the file is empty"
    except OSError as error:
        return f"it cannot be read: {error.strerror}"
    return ""


async def _inspect_all(posted: list[PostedFile], paths: dict[int, Path]) -> Findings:
    """Look at every set; a file that vanished or shrank meanwhile fails its own set only."""
    findings = Findings()
    gate = asyncio.Semaphore(AT_ONCE)
    async with Nursery(max_children=AT_ONCE) as nursery:

        async def one(found: ArchiveSet) -> Inspected | str:
            # Files are opened inside the gate: a thousand sets must not hold a thousand descriptors.
            async with gate:
                try:
                    return await _inspect_one(nursery, found, paths)
                except (OSError, RetryableError) as error:
                    return str(error)

        while posted:
            grouping = group(posted)
            findings.ignored += [(str(paths[i.file.message_id]), i.reason) for i in grouping.ignored]
            outcomes = await asyncio.gather(*map(one, grouping.sets))
            posted = []
            for found, outcome in zip(grouping.sets, outcomes, strict=True):
                if isinstance(outcome, Inspected):
                    findings.inspected.append(outcome)
                    # What a set is whole without looks for a set of its own.
                    posted += [part for part in found.parts if part not in outcome.found.parts]
                else:
                    findings.failed.append((str(paths[found.parts[0].message_id]), outcome))
    return findings


async def _inspect_one(nursery: Nursery, found: ArchiveSet, paths: dict[int, Path]) -> Inspected:
    """Look at a set, or at those of its files that are whole without the others."""
    inspected = await _examine(nursery, found, paths)
    if inspected.complete or inspected.missing:
        return inspected
    for fewer in without_spares(found):
        with _opened(fewer, paths) as archive:
            proven = await nursery.prove(archive)
        if stands_alone(fewer, proven):
            return await _examine(nursery, fewer, paths)
    return inspected


async def _examine(nursery: Nursery, found: ArchiveSet, paths: dict[int, Path]) -> Inspected:
    with _opened(found, paths) as archive:
        return Inspected(found, await nursery.examine(archive, LOCAL))


@contextlib.contextmanager
def _opened(found: ArchiveSet, paths: dict[int, Path]) -> Iterator[SetBytes]:
    with contextlib.ExitStack() as stack:
        readers = [stack.enter_context(FileReader(paths[part.message_id])) for part in found.parts]
        parts = tuple(Part(p.file_name, r) for p, r in zip(found.parts, readers, strict=True))
        indices = tuple(member.name.index for member in found.members)
        yield SetBytes(found.format, found.scheme, parts, indices)


def _set_json(item: Inspected) -> dict[str, Any]:
    return {
        "name": item.found.base_name,
        "format": item.examination.listing.format,
        "parts": [part.file_name for part in item.found.parts],
        "complete": item.complete,
        "missing": item.missing,
        "marks": item.marks,
        "entries": [entry._asdict() for entry in item.examination.listing.entries],
        "split": {
            "standard": _split_json(item.found, STANDARD_LIMIT),
            "premium": _split_json(item.found, PREMIUM_LIMIT),
        },
        "unproven": item.unproven,
        "unchecked": {reason.value: size for reason, size in item.examination.listing.unchecked},
        "entry_count": item.examination.listing.entry_count,
    }


def _split_json(found: ArchiveSet, limit: int) -> list[dict[str, Any]]:
    plan = split_plan([OriginalFile(part.file_name, part.size) for part in found.parts], limit)
    return [
        {
            "name": part.name,
            "file": plan.files[part.file_index].name,
            "offset": part.offset,
            "length": part.length,
        }
        for part in plan.parts
    ]


def _print_set(item: Inspected) -> None:
    listing = item.examination.listing
    kind = f"{listing.format}, {_count(len(item.found.parts), 'part', 'parts')}"
    click.echo(f"{plain(item.found.base_name)} ({kind}): {plain(item.state)}")
    if item.marks:
        click.echo(f"  marks: {', '.join(item.marks)}")
    for note in listing.notes:
        click.echo(f"  note: {plain(note)}")
    if item.unproven:
        names = plain(", ".join(item.unproven))
        click.echo(f"  nothing in these tells them from parts of another archive: {names}")
    for reason, size in listing.unchecked:
        click.echo(f"  not checked: {_count(size, 'byte', 'bytes')} ({reason})")
    entries = _count(listing.entry_count, "entry", "entries")
    click.echo(f"  {entries}, {_count(listing.total_size, 'byte', 'bytes')} unpacked")
    for entry in listing.entries[:SHOWN_ENTRIES]:
        click.echo(f"    {entry.size:>14}  {plain(entry.path)}")
    if listing.entry_count > SHOWN_ENTRIES:
        click.echo(f"    … and {listing.entry_count - SHOWN_ENTRIES} more")
    for name, limit in (("standard", STANDARD_LIMIT), ("premium", PREMIUM_LIMIT)):
        plan = _split_json(item.found, limit)
        click.echo(f"  sent by a {name} account as {_count(len(plan), 'part', 'parts')}")


def _count(number: int, one: str, many: str) -> str:
    return f"{number} {one if number == 1 else many}"
