"""Which AES-256-IGE this process uses, and the one interface to it.

``encrypt_in_place`` and ``open_in_place`` take several messages at once: the extension carries up to four of
them forward side by side, which is four times as fast as one after the other.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any, Literal, Protocol

from worker.cipher import openssl
from worker.cipher.native import native

if TYPE_CHECKING:
    from collections.abc import Callable

    # A writable buffer of whole blocks, a key of 32 bytes, an initialisation vector of 32.
    Job = tuple[bytearray | memoryview, bytes, bytes]
    # The same, and 32 bytes that are hashed before what comes out.
    Sealed = tuple[bytearray | memoryview, bytes, bytes, bytes]

try:
    import tgcrypto as _tgcrypto
except ImportError:
    _tgcrypto = None

Name = Literal["native", "tgcrypto", "openssl"]


class Backend(Protocol):
    """One implementation of the cipher."""

    name: Name

    def encrypt(self, jobs: list[Job]) -> None:
        """Encrypt every buffer in place."""
        ...

    def decrypt(self, jobs: list[Job]) -> None:
        """Decrypt every buffer in place."""
        ...

    def open(self, jobs: list[Sealed]) -> list[bytes]:
        """Decrypt every buffer in place; SHA-256 of each secret and what came out."""
        ...


def _open_in_two_passes(backend: Backend, jobs: list[Sealed]) -> list[bytes]:
    """Decrypt first, hash then."""
    backend.decrypt([(buffer, key, iv) for buffer, key, iv, _ in jobs])
    digests = [hashlib.sha256(secret) for _, _, _, secret in jobs]
    for digest, (buffer, _, _, _) in zip(digests, jobs, strict=True):
        digest.update(buffer)
    return [digest.digest() for digest in digests]


class Native:
    """The extension: releases the interpreter's lock, and copies nothing."""

    name: Name = "native"

    def encrypt(self, jobs: list[Job]) -> None:
        native.crypt(True, jobs)

    def decrypt(self, jobs: list[Job]) -> None:
        native.crypt(False, jobs)

    def open(self, jobs: list[Sealed]) -> list[bytes]:
        return _open_in_two_passes(self, jobs)


class NativeInOnePass(Native):
    """The extension on a processor that has instructions for the hash, too."""

    def open(self, jobs: list[Sealed]) -> list[bytes]:
        digests: list[bytes] = native.open(jobs)
        return digests


class OneByOne:
    """A backend that knows bytes objects only, one message at a time."""

    def __init__(
        self,
        name: Name,
        encrypt: Callable[[bytes, bytes, bytes], bytes],
        decrypt: Callable[[bytes, bytes, bytes], bytes],
    ) -> None:
        self.name = name
        self._encrypt, self._decrypt = encrypt, decrypt

    def encrypt(self, jobs: list[Job]) -> None:
        for buffer, key, iv in jobs:
            buffer[:] = self._encrypt(bytes(buffer), key, iv)

    def decrypt(self, jobs: list[Job]) -> None:
        for buffer, key, iv in jobs:
            buffer[:] = self._decrypt(bytes(buffer), key, iv)

    def open(self, jobs: list[Sealed]) -> list[bytes]:
        return _open_in_two_passes(self, jobs)


def available() -> dict[Name, Backend]:
    """What works on this machine, the fastest first."""
    found: list[Any] = []
    if native is not None and native.supported("crypt"):
        found.append(NativeInOnePass() if native.supported("open") else Native())
    if _tgcrypto is not None:
        found.append(OneByOne("tgcrypto", _tgcrypto.ige256_encrypt, _tgcrypto.ige256_decrypt))
    found.append(OneByOne("openssl", openssl.encrypt, openssl.decrypt))
    return {backend.name: backend for backend in found}


_backend: Backend = next(iter(available().values()))


def backend() -> Backend:
    """The one in use."""
    return _backend


def use(chosen: Backend) -> None:
    """Switch to another one, for the whole process."""
    global _backend  # noqa: PLW0603 - the one switch
    _backend = chosen


def encrypt_in_place(jobs: list[Job]) -> None:
    _backend.encrypt(jobs)


def open_in_place(jobs: list[Sealed]) -> list[bytes]:
    return _backend.open(jobs)


def encrypt(data: bytes, key: bytes, iv: bytes) -> bytes:
    """One message, as a bytes object of its own."""
    buffer = bytearray(data)
    _backend.encrypt([(buffer, key, iv)])
    return bytes(buffer)


def decrypt(data: bytes, key: bytes, iv: bytes) -> bytes:
    """One message, as a bytes object of its own."""
    buffer = bytearray(data)
    _backend.decrypt([(buffer, key, iv)])
    return bytes(buffer)
