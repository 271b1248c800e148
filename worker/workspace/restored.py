"""Writing the files of a package into a folder: all of them, checked, or none.

The bytes go to a hidden folder beside their place first. What is in it after an interruption is read again
and gone on from; the files get their names only when the whole content has the right hash, and never in the
place of a file that is there already.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
from typing import TYPE_CHECKING, BinaryIO

from worker import faults
from worker.domain.clean_name import clean_file_name
from worker.errors import FleetError, UserError
from worker.workspace.set_hash import SetHash

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from worker.domain.package_content import PackageContent

_BLOCK = 1024 * 1024


def target_names(names: Sequence[str]) -> list[str]:
    """The names that files get on disk: harmless, and each once."""
    taken: set[str] = set()
    next_number: dict[str, int] = {}
    result = []
    for name in map(clean_file_name, names):
        chosen, folded = name, name.casefold()
        number = next_number.get(folded, 2)
        while chosen.casefold() in taken:
            chosen, number = f"{number} {name}", number + 1
        next_number[folded] = number
        taken.add(chosen.casefold())
        result.append(chosen)
    return result


class RestoredFiles:
    """The files of one package on their way into ``folder``. Blocking: to be called from a thread."""

    def __init__(self, content: PackageContent, folder: Path) -> None:
        self._content = content
        self._aside = folder / f".fetch-{content.content_hash.hex()[:16]}"
        names = target_names([file.name for file in content.files])
        self.targets = [folder / name for name in names]
        self._pieces = [self._aside / f"{index:05d}" for index in range(len(names))]
        self._hash = SetHash()
        self._hashes: list[bytes] = []
        self._file: BinaryIO | None = None
        self._current = 0
        self._room = 0
        self.position = 0

    @contextlib.contextmanager
    def opened(self) -> Iterator[None]:
        """Be the only one who writes this package there; find out what is there of it."""
        self._refuse_to_overwrite()
        try:
            with faults.around("restored.folder"):
                self._aside.mkdir(parents=True, exist_ok=True)
            lock = (self._aside / "lock").open("wb")
        except OSError as error:
            raise _no_place(error, self._aside.parent) from error
        with lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                what = f"another command is fetching this package into {self._aside.parent}"
                raise UserError(what, remedy="wait for it") from None
            self._take_stock()
            try:
                yield
            finally:
                self._hash.close()
                self._settle()
                if not self.position:
                    # Nothing to go on from.
                    self._discard()

    def _refuse_to_overwrite(self) -> None:
        for target, piece in zip(self.targets, self._pieces, strict=True):
            # A kill while the files got their names leaves them linked twice: that one is ours.
            if os.path.lexists(target) and not (piece.exists() and target.samefile(piece)):
                raise UserError(f"{target} is there already", remedy="move it away, or give another folder")

    def _take_stock(self) -> None:
        """Read what an earlier command wrote, up to the first file that is not whole."""
        for index, (piece, file) in enumerate(zip(self._pieces, self._content.files, strict=True)):
            have = min(piece.stat().st_size, file.size) if piece.exists() else 0
            if have:
                with piece.open("rb") as stream:
                    while have and (data := stream.read(min(_BLOCK, have))):
                        self._count(index, data)
                        have -= len(data)
            self._open(index)
            if self._room:
                return

    def _open(self, index: int) -> None:
        """Go on writing at the end of what is right in this file."""
        self._settle()
        kept = self.position - sum(file.size for file in self._content.files[:index])
        with faults.around("restored.open"):
            self._file = self._pieces[index].open("r+b" if kept else "wb")
            self._file.truncate(kept)
            self._file.seek(kept)
        self._current, self._room = index, self._content.files[index].size - kept

    def _settle(self) -> None:
        """What was written of the current file is on the disk."""
        if self._file is not None and not self._file.closed:
            with faults.around("restored.settle"):
                self._file.flush()
                os.fsync(self._file.fileno())
            self._file.close()

    def _discard(self) -> None:
        with faults.around("restored.discard"):
            shutil.rmtree(self._aside, ignore_errors=True)

    def _count(self, index: int, data: bytes) -> None:
        self._end_files(index)
        self._hash.update(data)
        self.position += len(data)

    def _end_files(self, index: int) -> None:
        """No byte of a file before this one is still to come."""
        while len(self._hashes) < index:
            self._hashes.append(self._hash.end_part())

    def write(self, data: bytes) -> None:
        """The next bytes of the content, across the borders of files."""
        view = memoryview(data)
        while view:
            while not self._room:
                if self._current + 1 == len(self._pieces):
                    raise FleetError("more bytes came than the package has", remedy="run: worker verify")
                self._open(self._current + 1)
            piece = bytes(view[: self._room])
            assert self._file is not None
            try:
                with faults.around("restored.write"):
                    self._file.write(piece)
            except OSError as error:
                raise _no_place(error, self._aside.parent) from error
            self._count(self._current, piece)
            self._room -= len(piece)
            view = view[len(piece) :]

    def finish(self) -> list[str]:
        """Check the whole, and give the files their names; their hashes, in hex."""
        # Empty files at the end have not been opened by any byte.
        for index in range(self._current + 1, len(self._pieces)):
            self._open(index)
        self._settle()
        self._end_files(len(self._pieces))
        if self.position != self._content.size or self._hash.content() != self._content.content_hash:
            self._discard()
            raise FleetError(
                f"the bytes of package {self._content.package_id} are not those that were published",
                remedy="run the command once more; if it says so again: worker verify --full",
            )
        self._place()
        return [digest.hex() for digest in self._hashes]

    def _place(self) -> None:
        for piece, target in zip(self._pieces, self.targets, strict=True):
            if target.exists():
                if target.samefile(piece):
                    continue
                raise UserError(f"{target} has appeared meanwhile", remedy="move it away and run this again")
            with faults.around("restored.place"):
                try:
                    target.hardlink_to(piece)
                except (OSError, NotImplementedError):
                    # No such thing on this file system; the check above is the best there is then.
                    piece.rename(target)
        self._discard()


def _no_place(error: OSError, folder: Path) -> UserError:
    return UserError(
        f"{folder} cannot be written to: {error.strerror}", remedy="free some space or give another folder"
    )
