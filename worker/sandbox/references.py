"""File references and access hashes: proofs that a client learned of a thing itself, and where."""

from __future__ import annotations

import hashlib
import hmac
import struct
import time

from worker.sandbox.faults import RpcFault

_LAYOUT = struct.Struct("<BqqiI8s")
_KIND = 1


def own_hash(secret: int, user_id: int) -> int:
    """Return the access hash of a user or channel as this account sees it: no account can use another's."""
    digest = hashlib.sha256(struct.pack("<qq", secret, user_id)).digest()
    return int.from_bytes(digest[:8], "little", signed=True)


def _mac(secret: bytes, *parts: int) -> bytes:
    return hmac.digest(secret, repr(parts).encode(), "sha256")[:8]


class References:
    """Makes and checks file references. ``expire_all`` voids those made up to now."""

    def __init__(self, secret: bytes, lifetime: float, not_before: int = 0) -> None:
        self._secret = secret
        self.lifetime = lifetime
        self._generation = not_before

    @property
    def generation(self) -> int:
        return self._generation

    def expire_all(self) -> int:
        self._generation += 1
        return self._generation

    def make(self, document_id: int, box: int, message_id: int) -> bytes:
        """Return the reference of a document as found in this message."""
        made_at = int(time.time())
        mac = _mac(self._secret, document_id, box, message_id, made_at, self._generation)
        return _LAYOUT.pack(_KIND, box, self._generation, message_id, made_at, mac)

    def check(self, document_id: int, reference: bytes) -> tuple[int, int]:
        """Return the box and message a reference came from, or refuse it as the real server does."""
        if not reference:
            raise RpcFault(400, "FILE_REFERENCE_EMPTY")
        try:
            kind, box, generation, message_id, made_at, mac = _LAYOUT.unpack(reference)
        except struct.error as error:
            raise RpcFault(400, "FILE_REFERENCE_INVALID") from error
        if kind != _KIND or mac != _mac(self._secret, document_id, box, message_id, made_at, generation):
            raise RpcFault(400, "FILE_REFERENCE_INVALID")
        too_old = self.lifetime and time.time() - made_at > self.lifetime
        if generation != self._generation or too_old:
            raise RpcFault(400, "FILE_REFERENCE_EXPIRED")
        return box, message_id
