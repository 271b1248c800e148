"""``worker fetch``: the original files of a package, back on disk."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING

import click

from worker.cli.errand import do_errand, shown
from worker.cli.opening import Opened, database, opened, person, readable_errors, upgrade_embedded
from worker.errors import UserError
from worker.fleet.asking import Wish
from worker.plain_text import plain, to_json
from worker.status.wording import size
from worker.store.package_content import content_of, find_package
from worker.workspace.restored import RestoredFiles

if TYPE_CHECKING:
    from worker.domain.package_content import PackageContent


@click.command()
@click.argument("package")
@click.option(
    "-o",
    "--output",
    "folder",
    metavar="DIR",
    default=".",
    type=click.Path(path_type=Path, file_okay=False),
    help="Where the files go; made if it is not there.  [default: here]",
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def fetch(*, package: str, folder: Path, as_json: bool) -> None:
    """Restore the original files of PACKAGE (its number or content hash) and check them.

    Split parts are joined and volumes kept apart, as they were posted. A file that is there already is never
    overwritten; what was interrupted is gone on with.

    \b
    Examples:
      worker fetch 42
      worker fetch 42 -o restored
    """
    with readable_errors(), opened() as place:
        upgrade_embedded(place)
        content = asyncio.run(_look_up(place, package))
        files = RestoredFiles(content, folder)
        with files.opened():
            _bring(place, content, files, quiet=as_json)
            hashes = files.finish()
        restored = [
            {"path": str(target), "size": file.size, "sha256": digest}
            for target, file, digest in zip(files.targets, content.files, hashes, strict=True)
        ]
        if as_json:
            document = {
                "package": content.package_id,
                "content_hash": content.content_hash.hex(),
                "files": restored,
            }
            click.echo(to_json(document))
            return
        for item in restored:
            click.echo(f"{item['sha256']}  {plain(str(item['path']))}")
        click.echo(f"package {content.package_id} is restored: {size(content.size)}, and its hash is right")


async def _look_up(place: Opened, named: str) -> PackageContent:
    async with database(place.address) as opened_database:
        content = await content_of(opened_database, await find_package(opened_database, named))
    if content.state != "published":
        raise UserError(
            f"package {content.package_id} is no longer at the destination",
            remedy=f"see: worker packages show {content.package_id}",
        )
    return content


def _bring(place: Opened, content: PackageContent, files: RestoredFiles, *, quiet: bool) -> None:
    if files.position == content.size:
        return
    wish = Wish(
        kind="restore",
        channels=[part.channel_id for part in content.parts],
        arguments=lambda: {"package": content.package_id, "start": files.position},
        asked_by=person(),
    )
    with shown(quiet=quiet, of_bytes=True, write=files.write) as counter:
        do_errand(place, wish, counter)
