"""Encryption of what must not be readable in a dump of the database."""

from __future__ import annotations

import hashlib
import os
from typing import TYPE_CHECKING

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from worker.errors import UserError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

_NONCE_BYTES = 12


def key_id(key: bytes) -> str:
    """Tells which key a row was sealed with, and nothing about the key."""
    return hashlib.sha256(b"archive-fleet key id" + key).hexdigest()[:16]


class Sealer:
    """AES-256-GCM; what is sealed for one purpose opens for no other.

    The first key seals, every key opens. ``reread`` gives the keys as they stand now: they change under a
    running process when a person rotates them.
    """

    def __init__(self, *keys: bytes, reread: Callable[[], Sequence[bytes]] | None = None) -> None:
        self._reread = reread
        self._take(keys)

    def _take(self, keys: Sequence[bytes]) -> None:
        self._ciphers = {key_id(key): AESGCM(key) for key in keys}
        self.key_id = key_id(keys[0])

    def refresh(self) -> None:
        """Use the keys as they stand now."""
        if self._reread is not None:
            self._take(self._reread())

    def seal(self, plain: bytes, *, purpose: str) -> bytes:
        nonce = os.urandom(_NONCE_BYTES)
        return nonce + self._ciphers[self.key_id].encrypt(nonce, plain, purpose.encode())

    def open(self, sealed: bytes, *, purpose: str) -> bytes:
        plain = self._open(sealed, purpose)
        if plain is None:
            self.refresh()
            plain = self._open(sealed, purpose)
        if plain is None:
            raise UserError(
                "a stored session does not open with this secret key",
                remedy="use the key it was stored with, or make it anew:"
                " worker accounts login ACCOUNT --again, with --proxy if it had one",
            )
        return plain

    def _open(self, sealed: bytes, purpose: str) -> bytes | None:
        for cipher in self._ciphers.values():
            try:
                return cipher.decrypt(sealed[:_NONCE_BYTES], sealed[_NONCE_BYTES:], purpose.encode())
            except InvalidTag:
                continue
        return None
