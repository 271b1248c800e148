"""``worker packages``: what the library holds."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from worker.cli.opening import as_called, on_database, opened, readable_errors, upgrade_embedded
from worker.errors import UserError
from worker.plain_text import plain, to_json
from worker.status.wording import count_of, size
from worker.store.catalogue import list_packages, search_packages
from worker.store.metadata import index_again
from worker.store.package_card import package_card
from worker.store.package_content import find_package
from worker.store.previews import preview_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from worker.domain.preview import Preview
    from worker.store.catalogue import CataloguePackage
    from worker.store.database import Database
    from worker.store.package_card import PackageCard

_LIMIT = click.IntRange(1, 1000)


@click.group()
def packages() -> None:
    """See and search what has been published."""


@packages.command("list")
@click.option("--creator", metavar="NAME", help="Only those of this creator.")
@click.option("--tag", metavar="TAG", help="Only those with this tag.")
@click.option("--pending", is_flag=True, help="Only those whose listing is still to come, or failed.")
@click.option("--before", type=int, metavar="N", help="Go on before this package.")
@click.option("--limit", type=_LIMIT, default=50, show_default=True, help="At most so many.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def list_(
    *, creator: str | None, tag: str | None, pending: bool, before: int | None, limit: int, as_json: bool
) -> None:
    """List packages, the newest first.

    \b
    Examples:
      worker packages list
      worker packages list --tag models --limit 10
      worker packages list --pending
    """
    with readable_errors(), opened() as place:
        upgrade_embedded(place)
        found = on_database(
            place,
            lambda db: list_packages(
                db, limit=limit, before=before, creator=creator, tag=tag, pending=pending
            ),
        )
        if as_json:
            click.echo(_json([asdict(package) for package in found]))
            return
        for package in found:
            click.echo(_line(package))
        if not found:
            click.echo(as_called("no package yet; what is under way: worker status"), err=True)
        elif len(found) == limit:
            click.echo(as_called(f"more: worker packages list --before {found[-1].id}"), err=True)


@packages.command()
@click.argument("words", nargs=-1, required=True)
@click.option("--limit", type=_LIMIT, default=20, show_default=True, help="At most so many.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def search(*, words: tuple[str, ...], limit: int, as_json: bool) -> None:
    """Find packages by WORDS that their name holds, or the name of a file inside. Every word has to be there.

    \b
    Examples:
      worker packages search castle
      worker packages search tower .stl
    """
    with readable_errors(), opened() as place:
        upgrade_embedded(place)
        found = on_database(place, lambda db: search_packages(db, " ".join(words), limit=limit))
        if as_json:
            click.echo(_json([{**asdict(item.package), "paths": item.paths} for item in found]))
        else:
            for item in found:
                click.echo(_line(item.package))
                for path in item.paths:
                    click.echo(f"          {plain(path)}")
        if not found:
            click.echo("nothing found", err=True)


@packages.command()
@click.argument("package")
@click.option(
    "--files", type=click.IntRange(0, 200_000), default=20, show_default=True, help="Files to show."
)
@click.option(
    "--preview", "picture", type=click.Path(path_type=Path, dir_okay=False), help="Save the preview there."
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def show(*, package: str, files: int, picture: Path | None, as_json: bool) -> None:
    """Show all about PACKAGE (its number or content hash): where it lies, how it was posted, what is inside.

    \b
    Examples:
      worker packages show 42
      worker packages show 42 --files 1000
      worker packages show 42 --preview cover.jpg
    """
    with readable_errors(), opened() as place:
        upgrade_embedded(place)
        card, preview = on_database(place, lambda db: _card(db, package, files))
        if picture is not None:
            _save(card, preview, picture)
        if as_json:
            click.echo(_json(_document(card)))
            return
        for line in _describe(card):
            click.echo(line)


@packages.command()
@click.argument("package")
def reindex(*, package: str) -> None:
    """Have the listing, preview, creator and tags of PACKAGE made anew by the next run.

    \b
    Example: worker packages reindex 42
    """
    with readable_errors(), opened() as place:
        upgrade_embedded(place)
        number = on_database(place, lambda db: _reindex(db, package))
        click.echo(f"package {number} is indexed anew in the next round")


async def _card(database: Database, named: str, files: int) -> tuple[PackageCard, Preview | None]:
    number = await find_package(database, named)
    return await package_card(database, number, members=files), await preview_of(database, number)


async def _reindex(database: Database, named: str) -> int:
    number = await find_package(database, named)
    if not await index_again(database, number):
        raise UserError(f"no package {number} is published", remedy="see: worker packages list")
    return number


def _save(card: PackageCard, preview: Preview | None, path: Path) -> None:
    if preview is None:
        raise UserError(f"package {card.id} has no preview", remedy="see what is known: worker packages show")
    try:
        with path.open("xb") as file:
            file.write(preview.jpeg)
    except FileExistsError:
        raise UserError(f"{path} is there already", remedy="give another name") from None
    except OSError as error:
        raise UserError(f"{path} cannot be written: {error.strerror}", remedy="give another place") from None


def _line(package: CataloguePackage) -> str:
    facts = [size(package.size), _contents(package.metadata, package.file_count)]
    facts += [package.creator] if package.creator else []
    facts += [f"#{tag}" for tag in package.tags] + list(package.marks)
    if package.state != "published":
        facts.append(package.state)
    return f"{package.id:>8}  {plain(package.name)}  ({plain(', '.join(facts))})"


def _contents(metadata: str, file_count: int) -> str:
    if metadata == "complete":
        return count_of(file_count, "file")
    return "metadata pending" if metadata == "pending" else "listing failed"


def _document(card: PackageCard) -> dict[str, Any]:
    document = {**asdict(card), "content_hash": card.content_hash.hex()}
    document["parts"] = [{**asdict(part), "link": part.link} for part in card.parts]
    return document


def _describe(card: PackageCard) -> Iterator[str]:
    yield f"package {card.id}: {plain(card.name)}"
    yield f"  {card.archive_type}, {size(card.size)}, {card.state} {card.published_at:%Y-%m-%d %H:%M}"
    yield f"  hash {card.content_hash.hex()}"
    known = {
        "by": card.creator,
        "tags": ", ".join(card.tags),
        "marked": ", ".join(card.marks),
        "preview": card.preview,
        "listing": card.metadata_reason,
    }
    yield from (f"  {label} {plain(value)}" for label, value in known.items() if value)
    if card.metadata == "failed":
        yield as_called(f"  try the listing again: worker packages reindex {card.id}")
    yield "posted as"
    yield from (f"  {plain(original.file_name)}  {size(original.size)}" for original in card.originals)
    for posting in card.postings:
        where = f"in {plain(posting.channel)} on {posting.posted_at:%Y-%m-%d}"
        yield f"  {where} (set {posting.set_id}, {posting.state})"
    yield "lies at"
    yield from (f"  {part.link}  {plain(part.file_name)}  {size(part.length)}" for part in card.parts)
    yield from _inside(card)


def _inside(card: PackageCard) -> Iterator[str]:
    yield f"inside: {_contents(card.metadata, card.file_count)}"
    for member in card.members:
        locked = "  encrypted" if member.is_encrypted else ""
        yield f"  {'?' if member.size is None else size(member.size):>9}  {plain(member.path)}{locked}"
    if card.file_count > len(card.members):
        yield f"  … and {card.file_count - len(card.members):,} more"


def _json(document: Any) -> str:
    return to_json(document, default=lambda time: time.isoformat())
