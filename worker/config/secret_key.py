"""The key that sessions are encrypted with."""

from __future__ import annotations

import base64
import binascii
import contextlib
import os
import secrets
from typing import TYPE_CHECKING

from worker.errors import UserError

if TYPE_CHECKING:
    from pathlib import Path

    from worker.config.settings import Settings

KEY_BYTES = 32
_FILE_NAME = "secret.key"


def secret_key(settings: Settings) -> bytes:
    """The configured key; with the embedded database, one that is made once and kept in the data folder."""
    if settings.secret_key is not None:
        return _decode(settings.secret_key.get_secret_value(), "secret_key")
    if settings.database_url is not None:
        raise UserError(
            "no secret key is set, so sessions could not be encrypted",
            remedy="set WORKER_SECRET_KEY_FILE to a file made with: openssl rand -base64 32",
        )
    path = settings.data_dir / _FILE_NAME
    try:
        if not path.exists():
            _make(path)
        text = path.read_text(encoding="ascii").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(
            f"the secret key in {path} cannot be made or read: {error}", remedy="check who owns that folder"
        ) from error
    return _decode(text, str(path))


def _make(path: Path) -> None:
    """Write a fresh key in one step; of several processes that do so at once, the first one's key stays."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    unfinished = path.with_name(f"{_FILE_NAME}.{secrets.token_hex(8)}")
    descriptor = os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(base64.b64encode(secrets.token_bytes(KEY_BYTES)) + b"\n")
        file.flush()
        os.fsync(file.fileno())
    try:
        with contextlib.suppress(FileExistsError):
            path.hardlink_to(unfinished)
    finally:
        unfinished.unlink()


def _decode(text: str, where: str) -> bytes:
    remedy = "make one with: openssl rand -base64 32"
    try:
        key = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        raise UserError(f"{where} is not base64", remedy=remedy) from None
    if len(key) != KEY_BYTES:
        raise UserError(f"{where} has {len(key)} bytes, not {KEY_BYTES}", remedy=remedy)
    return key
