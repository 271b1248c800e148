"""MTProto 2.0 envelopes built and opened in place, for packets as large as file parts.

The library's own functions copy a part five times on its way; here a packet lives in one buffer from the
socket to the disk, and back. Every check that the protocol's security guidelines ask for is made.
"""

from __future__ import annotations

import hashlib
import os
import struct
from typing import TYPE_CHECKING

from worker.cipher import ige

if TYPE_CHECKING:
    from worker.cipher.ige import Job, Sealed

# Key id and message key, in the clear.
OUTER = 24
# Salt, session, message id, sequence number and length, encrypted with the body.
INNER = 32
_HEAD = struct.Struct("<qqqii")
_PADDING = (12, 1024)


class EnvelopeError(Exception):
    """The packet was not made by the server, or not for this session."""


class Key:
    """An authorisation key, with what is cut out of it for every packet."""

    __slots__ = ("_down", "_up", "key_id")

    def __init__(self, auth_key: bytes) -> None:
        self.key_id = hashlib.sha1(auth_key, usedforsecurity=False).digest()[-8:]
        # Per direction: what the message key is hashed with, and the two pieces the AES key is made from.
        self._up, self._down = (
            (auth_key[88 + x : 120 + x], auth_key[x : x + 36], auth_key[x + 40 : x + 76]) for x in (0, 8)
        )

    def seal(self, packet: memoryview, head: tuple[int, int, int, int], length: int) -> tuple[int, Job]:
        """Wrap the body of ``length`` bytes that stands behind outer and inner head.

        ``head`` is salt, session, message id and sequence number. Returns where the packet ends, and what is
        left to encrypt: packets are encrypted several at a time.
        """
        padding = -(INNER + length + 12) % 16 + 12
        end = OUTER + INNER + length + padding
        _HEAD.pack_into(packet, OUTER, *head, length)
        packet[end - padding : end] = os.urandom(padding)
        message_key = _message_key(self._up[0], packet[OUTER:end])
        packet[:8] = self.key_id
        packet[8:OUTER] = message_key
        return end, (packet[OUTER:end], *_aes(message_key, self._up))

    def job(self, packet: memoryview) -> Sealed:
        """What there is to decrypt of a packet."""
        if packet[:8] != self.key_id:
            raise EnvelopeError("the packet names another key")
        # A padded framing may leave some bytes behind the last whole block.
        end = len(packet) - (len(packet) - OUTER) % 16
        if end < OUTER + INNER + _PADDING[0]:
            raise EnvelopeError("the packet is too short")
        return (packet[OUTER:end], *_aes(bytes(packet[8:OUTER]), self._down), self._down[0])

    def check(self, packet: memoryview, digest: bytes, session: int) -> tuple[int, int, memoryview]:
        """Message id, sequence number and body of an opened packet; raises unless it is genuine."""
        end = len(packet) - (len(packet) - OUTER) % 16
        plain = packet[OUTER:end]
        if digest[8:24] != packet[8:OUTER]:
            raise EnvelopeError("the content does not fit the message key")
        _, of_session, message_id, sequence, length = _HEAD.unpack_from(plain)
        if of_session != session:
            raise EnvelopeError("the packet belongs to another session")
        padding = len(plain) - INNER - length
        if length < 0 or length % 4 or not _PADDING[0] <= padding <= _PADDING[1]:
            raise EnvelopeError("the length is out of bounds")
        if message_id % 2 == 0:
            raise EnvelopeError("the message id is not a server's")
        return message_id, sequence, plain[INNER : INNER + length]


def open_all(jobs: list[Sealed]) -> list[bytes]:
    """Decrypt packets in place; what each is to be checked with."""
    return ige.open_in_place(jobs)


def seal_all(jobs: list[Job]) -> None:
    """Encrypt packets in place."""
    ige.encrypt_in_place(jobs)


def _message_key(secret: bytes, plain: memoryview) -> bytes:
    digest = hashlib.sha256(secret)
    digest.update(plain)
    return digest.digest()[8:24]


def _aes(message_key: bytes, secrets: tuple[bytes, bytes, bytes]) -> tuple[bytes, bytes]:
    a = hashlib.sha256(message_key + secrets[1]).digest()
    b = hashlib.sha256(secrets[2] + message_key).digest()
    return a[:8] + b[8:24] + a[24:32], b[:8] + a[8:24] + b[24:32]
