"""Which AES the client library uses, and how fast it is here."""

from __future__ import annotations

import time
from dataclasses import dataclass

from pyrogram.crypto import aes

_BLOCK = 64 * 1024
_SECONDS = 0.05


@dataclass(frozen=True, slots=True)
class AesBackend:
    """The name of the implementation and its measured speed."""

    name: str
    megabytes_per_second: float
    is_fast: bool


def measure_aes_backend() -> AesBackend:
    """Encrypt for a twentieth of a second."""
    fast = hasattr(aes, "tgcrypto")
    block, key, iv = bytes(_BLOCK if fast else 4096), bytes(32), bytes(32)
    done, started = 0, time.perf_counter()
    while (elapsed := time.perf_counter() - started) < _SECONDS:
        aes.ige256_encrypt(block, key, iv)
        done += len(block)
    return AesBackend("tgcrypto" if fast else "pyaes", done / elapsed / 1e6, fast)
