"""The key that sessions are encrypted with, and the keys before it that still open what they sealed.

A line that begins with ``marker:`` is what is kept of a key that was given up: it opens nothing, and knows
again what was published under that key.
"""

from __future__ import annotations

import base64
import binascii
import contextlib
import fcntl
import os
import secrets
from typing import TYPE_CHECKING

from worker.config.own_file import read_own_file
from worker.domain.marker_code import marker_key
from worker.errors import UserError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from worker.config.settings import Settings

KEY_BYTES = 32
_FILE_NAME = "secret.key"
_VARIABLE = "WORKER_SECRET_KEY"
_FILE_VARIABLE = f"{_VARIABLE}_FILE"
_RETIRED = "marker:"


def secret_keys(settings: Settings, environ: Mapping[str, str] = os.environ) -> list[bytes]:
    """The configured keys, the one to seal with first, as they stand at this moment.

    With the embedded database a key is made once and kept in the data folder.
    """
    return _read(settings, environ)[0]


def marker_keys(settings: Settings, environ: Mapping[str, str] = os.environ) -> list[bytes]:
    """What markers are coded with: first the key for fresh ones, then those of earlier keys."""
    keys, retired = _read(settings, environ)
    return [*map(marker_key, keys), *retired]


def retired_line(key: bytes) -> str:
    """What stays in the file of a key that is given up."""
    return _RETIRED + base64.b64encode(marker_key(key)).decode()


def _read(settings: Settings, environ: Mapping[str, str]) -> tuple[list[bytes], list[bytes]]:
    if settings.secret_key is not None:
        return _decode(_configured(settings.secret_key.get_secret_value(), environ), "secret_key")
    if settings.database_url is not None:
        raise UserError(
            "no secret key is set, so sessions could not be encrypted",
            remedy="set WORKER_SECRET_KEY_FILE to a file made with: openssl rand -base64 32",
        )
    path = _own_file(settings)
    try:
        if not path.exists():
            _make(path)
        # Where others may write, one of them could have laid a key there that they know.
        text = read_own_file(path)
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(
            f"the secret key in {path} cannot be made or read: {error}", remedy="check who owns that folder"
        ) from error
    return _decode(text, str(path))


def is_ours(settings: Settings) -> bool:
    """Whether the key lies in the data folder, where this program keeps it by itself."""
    return settings.secret_key is None and settings.database_url is None


@contextlib.contextmanager
def changing_keys(settings: Settings) -> Iterator[None]:
    """Be the only process that changes the keys in the data folder."""
    with _own_file(settings).with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def write_keys(settings: Settings, keys: Sequence[bytes], given_up: Sequence[bytes] = ()) -> None:
    """Keep exactly these keys in the data folder, in one step, and of those that are given up their codes."""
    path = _own_file(settings)
    kept = [line for line in path.read_text(encoding="ascii").split() if line.startswith(_RETIRED)]
    unfinished = _write_aside(path, keys, [*kept, *map(retired_line, given_up)])
    unfinished.replace(path)
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def fresh_key() -> bytes:
    return secrets.token_bytes(KEY_BYTES)


def _configured(text: str, environ: Mapping[str, str]) -> str:
    """The setting; from its file, if that is where it came from, which may have changed since the start."""
    path = environ.get(_FILE_VARIABLE)
    if not path or _VARIABLE in environ:
        return text
    try:
        with open(path, encoding="utf-8") as file:  # noqa: PTH123 - the path is the environment's
            return file.read()
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(
            f"{_FILE_VARIABLE}: cannot read {path}", remedy="name a readable text file"
        ) from error


def _own_file(settings: Settings) -> Path:
    return settings.data_dir / _FILE_NAME


def _make(path: Path) -> None:
    """Write a fresh key in one step; of several processes that do so at once, the first one's key stays."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    unfinished = _write_aside(path, [fresh_key()])
    try:
        with contextlib.suppress(FileExistsError):
            path.hardlink_to(unfinished)
    finally:
        unfinished.unlink()


def _write_aside(path: Path, keys: Sequence[bytes], retired: Sequence[str] = ()) -> Path:
    unfinished = path.with_name(f"{_FILE_NAME}.{secrets.token_hex(8)}")
    descriptor = os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        lines = [*(base64.b64encode(key).decode() for key in keys), *dict.fromkeys(retired)]
        file.write("".join(f"{line}\n" for line in lines).encode())
        file.flush()
        os.fsync(file.fileno())
    return unfinished


def _decode(text: str, where: str) -> tuple[list[bytes], list[bytes]]:
    keys: list[bytes] = []
    retired: list[bytes] = []
    for line in text.split():
        if line.startswith(_RETIRED):
            retired.append(_decode_key(line.removeprefix(_RETIRED), f"a line {_RETIRED}… of {where}"))
        else:
            keys.append(_decode_key(line, where))
    if not keys:
        raise UserError(f"{where} is empty", remedy=_REMEDY)
    return keys, retired


def _decode_key(line: str, where: str) -> bytes:
    try:
        key = base64.b64decode(line, validate=True)
    except (binascii.Error, ValueError):
        raise UserError(f"{where} is not base64", remedy=_REMEDY) from None
    if len(key) != KEY_BYTES:
        raise UserError(f"{where} has {len(key)} bytes, not {KEY_BYTES}", remedy=_REMEDY)
    return key


_REMEDY = "make one with: openssl rand -base64 32"
