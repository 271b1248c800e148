"""The name of an RSA key in the key exchange."""

from __future__ import annotations

import hashlib


def _tl_bytes(value: int) -> bytes:
    data = value.to_bytes((value.bit_length() + 7) // 8, "big")
    head = bytes([len(data)]) if len(data) < 254 else b"\xfe" + len(data).to_bytes(3, "little")
    return head + data + bytes(-(len(head) + len(data)) % 4)


def fingerprint(modulus: int, exponent: int) -> int:
    """Return the low 64 bits of the SHA-1 of the TL-encoded key, as a signed number."""
    digest = hashlib.sha1(_tl_bytes(modulus) + _tl_bytes(exponent), usedforsecurity=False).digest()
    return int.from_bytes(digest[-8:], "little", signed=True)
