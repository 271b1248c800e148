"""Writing the files of a package into a folder: all of them, checked, or none.

The bytes go to a hidden folder of our own beside their place first. What is in it after an interruption is
read again and gone on from; the files get their names only when the whole content has the right hash, and
never in the place of a file that is there already.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
from typing import TYPE_CHECKING, BinaryIO

from worker import faults
from worker.domain.clean_name import clean_file_name
from worker.errors import FleetError, UserError
from worker.workspace.own_folder import OwnFolder
from worker.workspace.set_hash import SetHash

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from worker.domain.package_content import PackageContent

_BLOCK = 1024 * 1024
_LOCK = "lock"


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
        self._folder = folder
        self._name = f".fetch-{content.content_hash.hex()[:16]}"
        self._names = target_names([file.name for file in content.files])
        self.targets = [folder / name for name in self._names]
        self._pieces = [f"{index:05d}" for index in range(len(self._names))]
        self._hash = SetHash()
        self._hashes: list[bytes] = []
        self._file: BinaryIO | None = None
        self._current = 0
        self._room = 0
        self.position = 0

    @contextlib.contextmanager
    def opened(self) -> Iterator[None]:
        """Be the only one who writes this package there; find out what is there of it."""
        try:
            self._aside = OwnFolder.make(self._folder, self._name)
            lock = os.fdopen(self._aside.open(_LOCK, os.O_WRONLY | os.O_CREAT), "wb")
        except OSError as error:
            raise _no_place(error, self._folder) from error
        with contextlib.closing(self._aside), lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                what = f"another command is fetching this package into {self._folder}"
                raise UserError(what, remedy="wait for it") from None
            try:
                self._refuse_to_overwrite()
                self._take_stock()
                yield
            finally:
                self._hash.close()
                self._settle()
                if not any(self._has(piece) for piece in self._pieces):
                    # Nothing to go on from.
                    self._discard()

    def _has(self, piece: str) -> int:
        """How many bytes of a file are there."""
        found = self._aside.found(piece)
        return 0 if found is None else found.st_size

    def _refuse_to_overwrite(self) -> None:
        for target, name, piece in zip(self.targets, self._names, self._pieces, strict=True):
            if self._aside.beside(name) is not None and not self._is_placed(name, piece):
                raise UserError(f"{target} is there already", remedy="move it away, or give another folder")

    def _is_placed(self, name: str, piece: str) -> bool:
        """Whether a kill while the files got their names has left this one with both."""
        target, found = self._aside.beside(name), self._aside.found(piece)
        return target is not None and found is not None and os.path.samestat(target, found)

    def _take_stock(self) -> None:
        """Read what an earlier command wrote, up to the first file that is not whole."""
        for index, (piece, file) in enumerate(zip(self._pieces, self._content.files, strict=True)):
            have = min(self._has(piece), file.size)
            if have:
                with os.fdopen(self._aside.open(piece, os.O_RDONLY), "rb") as stream:
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
            piece = self._aside.open(self._pieces[index], os.O_RDWR | os.O_CREAT)
            self._file = os.fdopen(piece, "r+b")
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
        self._aside.remove()

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
                raise _no_place(error, self._folder) from error
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
        for piece, name, target in zip(self._pieces, self._names, self.targets, strict=True):
            if self._is_placed(name, piece):
                continue
            try:
                self._aside.place(piece, name)
            except FileExistsError:
                raise UserError(
                    f"{target} has appeared meanwhile", remedy="move it away and run this again"
                ) from None
        self._discard()


def _no_place(error: OSError, folder: Path) -> UserError:
    return UserError(
        f"{folder} cannot be written to: {error.strerror}", remedy="free some space or give another folder"
    )
