"""Two-step verification: the server's half of SRP, as the protocol defines it."""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyrogram import raw

from worker.sandbox.ledger.database import new_id
from worker.sandbox.wire.handshake import DH_PRIME, GENERATOR

if TYPE_CHECKING:
    from worker.sandbox.ledger.rows import Account

_P = DH_PRIME.to_bytes(256, "big")
_G = GENERATOR.to_bytes(256, "big")


def _hash(*parts: bytes) -> bytes:
    return hashlib.sha256(b"".join(parts)).digest()


def _wide(number: int) -> bytes:
    return number.to_bytes(256, "big")


def verifier(password: str, salt1: bytes, salt2: bytes) -> bytes:
    """Return what the server stores in place of the password. Slow by design: run it in a thread."""

    def salted(data: bytes, salt: bytes) -> bytes:
        return _hash(salt, data, salt)

    first = salted(salted(password.encode(), salt1), salt2)
    second = hashlib.pbkdf2_hmac("sha512", first, salt1, 100_000)
    x = int.from_bytes(salted(second, salt2), "big")
    return _wide(pow(GENERATOR, x, DH_PRIME))


def algorithm(salt1: bytes, salt2: bytes) -> raw.base.PasswordKdfAlgo:
    return raw.types.PasswordKdfAlgoSHA256SHA256PBKDF2HMACSHA512iter100000SHA256ModPow(
        salt1=salt1, salt2=salt2, g=GENERATOR, p=_P
    )


@dataclass(frozen=True, slots=True)
class Challenge:
    """One question; it can be answered once."""

    srp_id: int
    secret: int
    public: bytes

    @classmethod
    def pose(cls, account: Account) -> Challenge:
        assert account.verifier is not None
        secret = int.from_bytes(os.urandom(256), "big")
        k = int.from_bytes(_hash(_P, _G), "big")
        v = int.from_bytes(account.verifier, "big")
        public = (k * v + pow(GENERATOR, secret, DH_PRIME)) % DH_PRIME
        return cls(new_id(), secret, _wide(public))

    def is_answered_by(self, account: Account, client_public: bytes, proof: bytes) -> bool:
        assert account.verifier is not None
        assert account.salt1 is not None
        assert account.salt2 is not None
        a = int.from_bytes(client_public, "big")
        if not 0 < a < DH_PRIME:
            return False
        u = int.from_bytes(_hash(_wide(a), self.public), "big")
        v = int.from_bytes(account.verifier, "big")
        shared = _hash(_wide(pow(a * pow(v, u, DH_PRIME), self.secret, DH_PRIME)))
        mixed = bytes(x ^ y for x, y in zip(_hash(_P), _hash(_G), strict=True))
        expected = _hash(mixed, _hash(account.salt1), _hash(account.salt2), _wide(a), self.public, shared)
        return expected == proof
