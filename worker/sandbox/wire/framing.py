"""How packets are cut out of a TCP stream: full, abridged, intermediate, padded; plain or obfuscated.

The client's first bytes say which framing it speaks; ``accept`` reads them and returns a ``Channel`` whose
``receive`` and ``send`` speak whole packets.
"""

from __future__ import annotations

import os
import struct
import zlib
from typing import TYPE_CHECKING, Protocol

from cryptography.hazmat.primitives.ciphers import Cipher, CipherContext, algorithms, modes

if TYPE_CHECKING:
    import asyncio

ABRIDGED_TAG = b"\xef"
INTERMEDIATE_TAG = b"\xee" * 4
PADDED_TAG = b"\xdd" * 4
# The largest packet a client may send: a 512 KiB part with its envelope is far below it.
MAX_PACKET = 1 << 24


KEY_UNKNOWN, TOO_MANY_CONNECTIONS = -404, -429


def transport_error(code: int) -> bytes:
    """A packet of four bytes is an error of the transport itself."""
    return code.to_bytes(4, "little", signed=True)


class FramingError(ConnectionError):
    """The peer does not speak a framing this server knows."""


class Framing(Protocol):
    """Cuts packets: ``lead`` reads the length of the next one, ``wrap`` prepares one for sending."""

    # Bytes that belong to the framing behind every packet.
    tail: int

    async def lead(self, stream: Stream) -> int:
        """Read the head of the next packet and return how many bytes it has."""
        ...

    def wrap(self, packet: bytes) -> bytes:
        """Return the packet with its head (and padding)."""
        ...


class Stream:
    """A socket whose bytes may be hidden behind AES-CTR in both directions."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self.writer = writer
        self._decrypt: CipherContext | None = None
        self._encrypt: CipherContext | None = None
        self._ahead = b""

    def unread(self, data: bytes) -> None:
        """Put bytes back that were read only to look at them."""
        self._ahead = data + self._ahead

    def obfuscate(self, decrypt: CipherContext, encrypt: CipherContext) -> None:
        """From here on every byte passes through these ciphers."""
        self._decrypt, self._encrypt = decrypt, encrypt

    async def read(self, length: int) -> bytes:
        """Read exactly ``length`` bytes, or raise ``IncompleteReadError`` at the end of the stream."""
        if self._ahead:
            data, self._ahead = self._ahead[:length], self._ahead[length:]
            return data if len(data) == length else data + await self.read(length - len(data))
        data = await self._reader.readexactly(length)
        return self._decrypt.update(data) if self._decrypt else data

    def write(self, data: bytes) -> None:
        """Queue bytes for sending; ``writer.drain`` is the caller's duty."""
        self.writer.write(self._encrypt.update(data) if self._encrypt else data)


class Full:
    """Length, number and checksum around every packet; the client says nothing beforehand."""

    tail = 4

    def __init__(self) -> None:
        self._sent = 0

    async def lead(self, stream: Stream) -> int:
        head = await stream.read(8)
        return int.from_bytes(head[:4], "little") - 12

    def wrap(self, packet: bytes) -> bytes:
        framed = struct.pack("<ii", len(packet) + 12, self._sent) + packet
        self._sent += 1
        return framed + zlib.crc32(framed).to_bytes(4, "little")


class Abridged:
    """One length byte in 4-byte words; 0x7f and three bytes for longer packets."""

    tail = 0

    async def lead(self, stream: Stream) -> int:
        head = (await stream.read(1))[0]
        # The highest bit asks for a quick acknowledgement, which the server is free not to give.
        head &= 0x7F
        if head == 0x7F:
            return int.from_bytes(await stream.read(3), "little") * 4
        return head * 4

    def wrap(self, packet: bytes) -> bytes:
        words = len(packet) // 4
        head = bytes([words]) if words < 0x7F else b"\x7f" + words.to_bytes(3, "little")
        return head + packet


class Intermediate:
    """Four length bytes; the highest bit asks for a quick acknowledgement."""

    tail = 0

    async def lead(self, stream: Stream) -> int:
        return int.from_bytes(await stream.read(4), "little") & 0x7FFFFFFF

    def wrap(self, packet: bytes) -> bytes:
        return len(packet).to_bytes(4, "little") + packet


class PaddedIntermediate(Intermediate):
    """Intermediate with up to 15 random bytes behind the packet."""

    def wrap(self, packet: bytes) -> bytes:
        padding = os.urandom(os.urandom(1)[0] % 16)
        return (len(packet) + len(padding)).to_bytes(4, "little") + packet + padding


class Channel:
    """Whole packets over one connection."""

    def __init__(self, stream: Stream, framing: Framing) -> None:
        self._stream = stream
        self._framing = framing
        self.writer = stream.writer

    async def receive(self) -> bytes:
        """Return the next packet; ``IncompleteReadError`` when the client has gone."""
        length = await self._framing.lead(self._stream)
        if not 0 < length <= MAX_PACKET:
            raise FramingError(f"a packet of {length} bytes is announced, at most {MAX_PACKET} are allowed")
        packet = await self._stream.read(length)
        if self._framing.tail:
            await self._stream.read(self._framing.tail)
        return packet

    async def send(self, packet: bytes) -> None:
        """Send one packet, waiting while the client reads slowly."""
        self._stream.write(self._framing.wrap(packet))
        await self.writer.drain()


async def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> Channel:
    """Find out from the first bytes how this client frames its packets."""
    stream = Stream(reader, writer)
    first = await stream.read(1)
    if first == ABRIDGED_TAG:
        return Channel(stream, Abridged())
    head = first + await stream.read(3)
    if head == INTERMEDIATE_TAG:
        return Channel(stream, Intermediate())
    if head == PADDED_TAG:
        return Channel(stream, PaddedIntermediate())
    number = await stream.read(4)
    if number == bytes(4):
        # An obfuscated header never has zeros here: this is the number of a first full packet.
        stream.unread(head + number)
        return Channel(stream, Full())
    return Channel(stream, _deobfuscate(stream, head + number + await stream.read(56)))


def _ctr(secret: bytes) -> CipherContext:
    return Cipher(algorithms.AES(secret[:32]), modes.CTR(secret[32:48])).encryptor()


def _deobfuscate(stream: Stream, header: bytes) -> Framing:
    """Set up the ciphers of an obfuscated connection; its framing stands in bytes 56 to 60 of the header."""
    secret = header[8:56]
    decrypt, encrypt = _ctr(secret), _ctr(secret[::-1])
    tag = decrypt.update(header)[56:60]
    stream.obfuscate(decrypt, encrypt)
    framings: dict[bytes, Framing] = {
        ABRIDGED_TAG * 4: Abridged(),
        INTERMEDIATE_TAG: Intermediate(),
        PADDED_TAG: PaddedIntermediate(),
    }
    if tag not in framings:
        raise FramingError(f"unknown framing {tag.hex()}: neither plain nor obfuscated")
    return framings[tag]
