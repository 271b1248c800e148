"""The bytes of documents and of uploads under way, in plain files: nothing of their size is held in memory.

A part of an upload lies at ``part * 512 KiB``, whatever its size. An upload in parts of 512 KiB (all but the
last) thus already is the document; other part sizes are closed up when the upload becomes one.
"""

from __future__ import annotations

import hashlib
import os
import shutil
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

STRIDE = 512 * 1024


class Blobs:
    """Files of one state directory."""

    def __init__(self, directory: Path) -> None:
        self._documents = directory / "documents"
        self._uploads = directory / "uploads"
        self._documents.mkdir(exist_ok=True)
        self._uploads.mkdir(exist_ok=True)

    def _document(self, document_id: int) -> Path:
        return self._documents / str(document_id)

    def _upload(self, user_id: int, file_id: int) -> Path:
        return self._uploads / f"{user_id}-{file_id}"

    def write_part(self, user_id: int, file_id: int, part: int, data: bytes) -> None:
        descriptor = os.open(self._upload(user_id, file_id), os.O_WRONLY | os.O_CREAT, 0o600)
        try:
            os.pwrite(descriptor, data, part * STRIDE)
        finally:
            os.close(descriptor)

    def finish(self, user_id: int, file_id: int, sizes: Sequence[int], document_id: int) -> None:
        """Turn the parts into the document's blob. Blocking: run it in a thread."""
        source, target = self._upload(user_id, file_id), self._document(document_id)
        if all(size == STRIDE for size in sizes[:-1]):
            # A part that was sent longer at first may have left bytes behind the end.
            os.truncate(source, sum(sizes))
            source.replace(target)
            return
        half_made = target.with_suffix(".part")
        with source.open("rb") as reader, half_made.open("wb") as writer:
            for part, size in enumerate(sizes):
                reader.seek(part * STRIDE)
                writer.write(reader.read(size))
        half_made.replace(target)
        source.unlink()

    def upload_bytes(self, user_id: int, file_id: int, sizes: Sequence[int]) -> bytes:
        """Return a small upload whole; only the checksum of files up to 10 MiB is asked for."""
        with self._upload(user_id, file_id).open("rb") as reader:
            pieces = []
            for part, size in enumerate(sizes):
                reader.seek(part * STRIDE)
                pieces.append(reader.read(size))
        return b"".join(pieces)

    def adopt(self, path: Path, document_id: int) -> int:
        """Copy a file of the machine as a document and return its size. Blocking: run it in a thread."""
        half_made = self._document(document_id).with_suffix(".part")
        shutil.copyfile(path, half_made)
        half_made.replace(self._document(document_id))
        return self._document(document_id).stat().st_size

    def read(self, document_id: int, offset: int, limit: int) -> bytes:
        descriptor = os.open(self._document(document_id), os.O_RDONLY)
        try:
            return os.pread(descriptor, limit, offset)
        finally:
            os.close(descriptor)

    def sha256(self, document_id: int) -> str:
        """Return the hash of a whole document. Blocking: run it in a thread."""
        with self._document(document_id).open("rb") as reader:
            return hashlib.file_digest(reader, "sha256").hexdigest()
