import asyncio
import os

import pytest
from pyrogram.crypto import mtproto
from pyrogram.raw.core import Message
from pyrogram.raw.functions import Ping

from worker.sandbox.wire import envelope
from worker.sandbox.wire.framing import (
    Abridged,
    Channel,
    FramingError,
    Full,
    Intermediate,
    PaddedIntermediate,
    Stream,
    accept,
)

KEY = os.urandom(256)


def fed(data):
    reader = asyncio.StreamReader()
    reader.feed_data(data)
    reader.feed_eof()
    return reader


@pytest.mark.parametrize("size", [4, 504, 508, 512, 70_000])
@pytest.mark.parametrize("framing", [Full, Abridged, Intermediate])
async def test_a_framed_packet_comes_out_whole(framing, size):
    packet = os.urandom(size)
    channel = Channel(Stream(fed(framing().wrap(packet)), None), framing())
    assert await channel.receive() == packet


async def test_a_padded_packet_begins_with_what_was_sent():
    packet = os.urandom(512)
    channel = Channel(Stream(fed(PaddedIntermediate().wrap(packet)), None), PaddedIntermediate())
    assert (await channel.receive())[:512] == packet


async def test_a_first_full_packet_is_told_from_an_obfuscated_header():
    packet = os.urandom(40)
    channel = await accept(fed(Full().wrap(packet)), None)
    assert await channel.receive() == packet


async def test_an_enormous_packet_is_refused_before_it_is_read():
    channel = await accept(fed(b"\xee" * 4 + (1 << 30).to_bytes(4, "little")), None)
    with pytest.raises(FramingError):
        await channel.receive()


async def test_noise_is_no_framing():
    with pytest.raises(FramingError):
        await accept(fed(b"\x01" * 64), None)


def test_the_server_opens_what_the_client_library_seals():
    message = Message(Ping(ping_id=7), 1 << 34, 0, len(Ping(ping_id=7).write()))
    packet = mtproto.pack(message, 5, b"session!", KEY, bytes(8))
    opened = envelope.open_packet(packet + b"pad", KEY)
    assert (opened.salt, opened.msg_id, opened.seq_no) == (5, 1 << 34, 0)
    assert opened.body == Ping(ping_id=7).write()


def test_a_packet_that_was_touched_is_refused():
    message = Message(Ping(ping_id=7), 1 << 34, 0, len(Ping(ping_id=7).write()))
    packet = bytearray(mtproto.pack(message, 5, b"session!", KEY, bytes(8)))
    packet[-1] ^= 1
    with pytest.raises(envelope.EnvelopeError):
        envelope.open_packet(bytes(packet), KEY)
