"""Encryption of what must not be readable in a dump of the database."""

from __future__ import annotations

import hashlib
import os

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from worker.errors import UserError

_NONCE_BYTES = 12


class Sealer:
    """AES-256-GCM under one key; what is sealed for one purpose opens for no other."""

    def __init__(self, key: bytes) -> None:
        self._cipher = AESGCM(key)
        # Tells which key a row was sealed with, and nothing about the key.
        self.key_id = hashlib.sha256(b"archive-fleet key id" + key).hexdigest()[:16]

    def seal(self, plain: bytes, *, purpose: str) -> bytes:
        nonce = os.urandom(_NONCE_BYTES)
        return nonce + self._cipher.encrypt(nonce, plain, purpose.encode())

    def open(self, sealed: bytes, *, purpose: str) -> bytes:
        try:
            return self._cipher.decrypt(sealed[:_NONCE_BYTES], sealed[_NONCE_BYTES:], purpose.encode())
        except InvalidTag:
            raise UserError(
                "a stored session does not open with this secret key",
                remedy="use the key it was stored with, or log the account in again",
            ) from None
