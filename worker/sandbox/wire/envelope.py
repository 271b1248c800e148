"""MTProto 2.0 envelopes, seen from the server: open what a client sealed, seal what it will open."""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass

from worker.cipher import ige


class EnvelopeError(ConnectionError):
    """The packet was not sealed with the key it names."""


@dataclass(frozen=True, slots=True)
class Opened:
    """One decrypted packet; ``body`` is a TL object or a container."""

    salt: int
    session_id: int
    msg_id: int
    seq_no: int
    body: bytes


def key_id(auth_key: bytes) -> int:
    """Return the 64 bits by which a packet names its key."""
    return int.from_bytes(hashlib.sha1(auth_key, usedforsecurity=False).digest()[-8:], "little", signed=True)


def _aes(auth_key: bytes, msg_key: bytes, x: int) -> tuple[bytes, bytes]:
    a = hashlib.sha256(msg_key + auth_key[x : x + 36]).digest()
    b = hashlib.sha256(auth_key[x + 40 : x + 76] + msg_key).digest()
    return a[:8] + b[8:24] + a[24:32], b[:8] + a[8:24] + b[24:32]


def open_packet(packet: bytes, auth_key: bytes) -> Opened:
    """Decrypt a client's packet and check everything the protocol asks to check."""
    msg_key = packet[8:24]
    # Padded framing leaves up to 15 bytes behind the last whole block.
    end = len(packet) - (len(packet) - 24) % 16
    if end < 24 + 32:
        raise EnvelopeError("the packet's length is not that of an envelope")
    # One copy, decrypted in place: file parts pass through here.
    plain = memoryview(bytearray(memoryview(packet)[24:end]))
    (digest,) = ige.open_in_place([(plain, *_aes(auth_key, msg_key, 0), auth_key[88:120])])
    if digest[8:24] != msg_key:
        raise EnvelopeError("the packet's key does not match its content")
    length = int.from_bytes(plain[28:32], "little")
    if length % 4 or not 12 <= len(plain) - 32 - length <= 1024:
        raise EnvelopeError("the packet's padding is out of bounds")
    return Opened(
        salt=int.from_bytes(plain[:8], "little", signed=True),
        session_id=int.from_bytes(plain[8:16], "little", signed=True),
        msg_id=int.from_bytes(plain[16:24], "little", signed=True),
        seq_no=int.from_bytes(plain[24:28], "little"),
        body=bytes(plain[32 : 32 + length]),
    )


def seal(opened: Opened, auth_key: bytes, packed_key_id: bytes) -> bytes | bytearray:
    """Encrypt a message for the client."""
    # Joined at once, since the body may be a whole file part.
    packet = bytearray().join(
        (
            bytes(24),
            opened.salt.to_bytes(8, "little", signed=True),
            opened.session_id.to_bytes(8, "little", signed=True),
            opened.msg_id.to_bytes(8, "little", signed=True),
            opened.seq_no.to_bytes(4, "little"),
            len(opened.body).to_bytes(4, "little"),
            opened.body,
            os.urandom(-(32 + len(opened.body) + 12) % 16 + 12),
        )
    )
    plain = memoryview(packet)[24:]
    msg_key = _message_key(auth_key[96:128], plain)
    ige.encrypt_in_place([(plain, *_aes(auth_key, msg_key, 8))])
    plain.release()
    packet[:8], packet[8:24] = packed_key_id, msg_key
    return packet


def _message_key(secret: bytes, plain: memoryview) -> bytes:
    digest = hashlib.sha256(secret)
    digest.update(plain)
    return digest.digest()[8:24]
