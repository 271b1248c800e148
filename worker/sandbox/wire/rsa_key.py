"""The server's own RSA key: made once per state directory, its public half published as a PEM file."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from pyrogram.crypto import aes

from worker.cipher import ige
from worker.sandbox.public_key import fingerprint

if TYPE_CHECKING:
    from pathlib import Path


@dataclass(frozen=True, slots=True)
class RsaKey:
    """The numbers of the key and where its public half lies."""

    secret: rsa.RSAPrivateNumbers
    public_pem: Path

    @property
    def fingerprint(self) -> int:
        public = self.secret.public_numbers
        return fingerprint(public.n, public.e)

    def decrypt(self, data: bytes) -> bytes:
        """Undo raw RSA; both ways of padding an inner message stand below."""
        # Two halves by the Chinese remainder theorem: a quarter of the time of one exponentiation modulo n.
        number, key = int.from_bytes(data, "big"), self.secret
        by_p, by_q = pow(number, key.dmp1, key.p), pow(number, key.dmq1, key.q)
        return (by_q + (by_p - by_q) * key.iqmp % key.p * key.q).to_bytes(256, "big")


def load_or_make(directory: Path) -> RsaKey:
    """Return the key of this state directory, making it on the first start."""
    private_path, public_path = directory / "server-key.pem", directory / "server-key.pub.pem"
    if private_path.exists():
        # This server's own file: to look whether its primes are prime takes longer than the rest of a start.
        key = serialization.load_pem_private_key(
            private_path.read_bytes(), password=None, unsafe_skip_rsa_key_validation=True
        )
        assert isinstance(key, rsa.RSAPrivateKey)
    else:
        key = new_key()
        private_path.write_bytes(
            key.private_bytes(
                serialization.Encoding.PEM,
                serialization.PrivateFormat.PKCS8,
                serialization.NoEncryption(),
            )
        )
    # As Telegram publishes its own keys. Written at every start: an older folder may hold another form.
    pkcs1 = key.public_key().public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.PKCS1)
    if not public_path.exists() or public_path.read_bytes() != pkcs1:
        public_path.write_bytes(pkcs1)
    return RsaKey(key.private_numbers(), public_path)


def new_key() -> rsa.RSAPrivateKey:
    """A key for a directory that has none."""
    return rsa.generate_private_key(public_exponent=65537, key_size=2048)


def inner_message(key: RsaKey, encrypted: bytes) -> bytes | None:
    """Return the padded inner message of a key exchange, or None if neither padding fits."""
    plain = key.decrypt(encrypted)
    return _rsa_pad(plain) or _sha1_padded(plain)


def _sha1_padded(plain: bytes) -> bytes | None:
    """The older way: SHA-1 of the message, the message, random bytes. The hash is checked after parsing."""
    return plain[1:] if plain[0] == 0 else None


def _rsa_pad(plain: bytes) -> bytes | None:
    """RSA_PAD: a temporary AES key hidden by the hash of what it encrypts; the message lies reversed."""
    hidden_key, encrypted = plain[:32], plain[32:]
    temporary = aes.xor(hidden_key, hashlib.sha256(encrypted).digest())
    data = ige.decrypt(encrypted, temporary, bytes(32))
    padded, digest = data[:192][::-1], data[192:]
    if hashlib.sha256(temporary + padded).digest() != digest:
        return None
    # Twenty bytes stand where the older way has its SHA-1, so that both are read alike.
    return bytes(20) + padded
