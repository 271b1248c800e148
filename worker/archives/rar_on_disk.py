"""The volumes of a RAR on the disk under names by which programs find one from the other."""

from __future__ import annotations

import contextlib
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from worker.archives.reader import FileReader, SetBytes
from worker.domain.archive_name import ArchiveFormat, Scheme

if TYPE_CHECKING:
    from collections.abc import Iterator


@contextlib.contextmanager
def volumes_on_disk(archive: SetBytes) -> Iterator[list[str]]:
    """Links to them in order, in a folder of their own; none if they are not on the disk as volumes."""
    files = [part.reader.path for part in archive.parts if isinstance(part.reader, FileReader)]
    whole = len(files) == len(archive.parts) > 0
    if archive.format is not ArchiveFormat.RAR or archive.scheme is Scheme.NUMBERED or not whole:
        yield []
        return
    with contextlib.ExitStack() as stack:
        try:
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="archive-fleet-")))
        except OSError:
            # Nowhere to put them: the packed members stay unchecked, which the listing says.
            yield []
            return
        links = [folder / _name(archive.scheme, number, len(files)) for number in range(len(files))]
        for link, file in zip(links, files, strict=True):
            link.symlink_to(file.resolve())
        yield list(map(str, links))


def _name(scheme: Scheme, number: int, count: int) -> str:
    if scheme is Scheme.RAR_PARTS:
        return f"set.part{number + 1:0{len(str(count))}d}.rar"
    # After .r99 comes .s00.
    return "set.rar" if number == 0 else f"set.{chr(ord('r') + (number - 1) // 100)}{(number - 1) % 100:02d}"
