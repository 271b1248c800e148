"""Whatever bytes come, reading them is bounded in time and memory, and fails in one way."""

import asyncio
import contextlib
import gzip
import hashlib
import os
import socket
import struct
import time
import tracemalloc
import zlib
from io import BytesIO

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyrogram import raw
from pyrogram.crypto import aes, mtproto
from pyrogram.raw.core import GzipPacked, Int, MsgContainer, Vector
from pyrogram.raw.core.primitives import Bytes
from test_route import question, route_with

from worker.errors import RetryableError
from worker.telegram import unpacking
from worker.telegram.envelope import Key
from worker.telegram.factoring import factors
from worker.telegram.framing import (
    LARGEST_PACKET,
    MOST_QUICK_ACKS,
    FramingError,
    QuickAcks,
    abridged_packet,
    padded_packet,
)
from worker.telegram.inbox import Inbox
from worker.telegram.key_exchange import KeyExchangeError, plain_message
from worker.telegram.line import Line, LineLostError
from worker.telegram.unpacking import MOST_MESSAGES, MalformedError, Unreadable, read_object, unzipped

unpacking.install()
MIB = 1 << 20
FAST = settings(max_examples=100, deadline=None)
# A lie in a length or a count, as it is found where the schema has one.
NUMBERS = st.sampled_from([0, 1, 2, 1020, 1021, 2**16, 2**24, 2**31 - 1, -1, -(2**31)])
RESULT, ERROR, SALT, NOTICE = 0xF35C6D01, 0x2144CA19, 0xEDAB447B, 0xA7EFF811
SALTS, VECTOR, HASHES = 0xAE500895, 0x1CB5C415, 0xF39B035C


def packed(data: bytes) -> bytes:
    return Int(GzipPacked.ID, False) + Bytes(data)


def bomb(megabytes: int) -> bytes:
    """Zeros, zipped: a thousandth of their size."""
    stream = zlib.compressobj(9, wbits=31)
    return b"".join([*(stream.compress(bytes(MIB)) for _ in range(megabytes)), stream.flush()])


def peak_of(work) -> int:
    tracemalloc.start()
    try:
        work()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_a_small_packet_that_unzips_to_64_mib_is_refused_before_it_has():
    data = packed(bomb(64))

    def refused():
        with pytest.raises(MalformedError, match="unzip to more"):
            read_object(data)

    assert peak_of(refused) < 20 * MIB


def test_w2_a_page_of_the_longest_messages_that_anybody_may_post_is_read_however_small_it_was_zipped():
    channel = raw.types.PeerChannel(channel_id=1)
    messages = [
        raw.types.Message(id=number, peer_id=channel, date=number, message="\u3042" * 4096)
        for number in range(1, 101)
    ]
    page = raw.types.messages.Messages(messages=messages, topics=[], chats=[], users=[]).write()
    zipped = gzip.compress(page)
    assert len(page) > MIB
    assert len(page) > 100 * len(zipped)
    assert len(read_object(packed(zipped)).messages) == 100


def test_many_that_are_small_enough_each_are_refused_together():
    each = packed(gzip.compress(Bytes(os.urandom(4 * MIB)), compresslevel=0))
    message = struct.pack("<qii", 1, 1, len(each)) + each
    with pytest.raises(MalformedError):
        read_object(Int(MsgContainer.ID, False) + Int(8) + message * 8)


def test_what_is_zipped_holds_nothing_zipped():
    inner = Int(0x347773C5, False) + bytes(16)
    once = packed(gzip.compress(inner))
    assert read_object(once).QUALNAME == "types.Pong"
    with pytest.raises(MalformedError, match="zipped holds something zipped"):
        read_object(packed(gzip.compress(once)))


def test_a_zipped_answer_that_ends_too_early_is_refused():
    with pytest.raises(MalformedError, match="too early"):
        unzipped(gzip.compress(os.urandom(1000))[:-9])
    with pytest.raises(MalformedError, match="cannot be unzipped"):
        unzipped(b"no such thing")


@pytest.mark.parametrize(
    "data",
    [
        Int(VECTOR, False) + Int(2**31 - 1) + bytes(64),
        Int(VECTOR, False) + Int(-1) + bytes(64),
        Int(MsgContainer.ID, False) + Int(2**31 - 1) + bytes(64),
        Int(MsgContainer.ID, False) + Int(1) + struct.pack("<qii", 1, 1, -16) + bytes(64),
        Int(MsgContainer.ID, False) + Int(1) + struct.pack("<qii", 1, 1, 2**30) + bytes(64),
        Int(SALTS, False) + bytes(12) + Int(2**31 - 1) + bytes(64),
        b"",
    ],
    ids=["list", "negative", "container", "negative message", "long message", "salts", "nothing"],
)
def test_a_count_or_length_that_the_bytes_do_not_bear_out_is_refused(data):
    with pytest.raises(MalformedError):
        read_object(data)


def test_a_list_of_as_many_items_as_there_are_bytes_for_is_read():
    assert read_object(Vector([Int(number) and number for number in (5, 6, 7)], Int)) == [5, 6, 7]


@FAST
@given(
    kind=st.sampled_from([VECTOR, MsgContainer.ID, GzipPacked.ID, SALTS, RESULT, SALT, 0x05162463]),
    number=NUMBERS,
    rest=st.binary(max_size=400),
)
def test_whatever_an_object_says_it_is_read_or_refused(kind, number, rest):
    data = Int(kind, False) + struct.pack("<i", number) + rest
    with contextlib.suppress(MalformedError):
        read_object(data)


@FAST
@given(packet=st.binary(max_size=400), length=NUMBERS)
def test_whatever_comes_in_the_clear_is_an_answer_or_refused(packet, length):
    for head in (packet[:16], bytes(8) + packet[8:16]):
        with contextlib.suppress(KeyExchangeError, ConnectionResetError):
            plain_message(head + struct.pack("<i", length) + packet[20:])


class Fed:
    """A connection on which everything has arrived already."""

    def __init__(self, data: bytes) -> None:
        self._data, self.most = memoryview(data), 0

    async def read(self, length):
        self.most = max(self.most, length)
        taken, self._data = self._data[:length], self._data[length:]
        return bytes(taken) if len(taken) == length else None


@pytest.mark.parametrize("next_packet", [abridged_packet, padded_packet])
@FAST
@given(data=st.lists(st.one_of(st.binary(max_size=40), st.sampled_from([b"\xff" * 4, b"\x7f\xff\xff\xff"]))))
async def test_no_framing_asks_for_more_than_16_mib(next_packet, data):
    fed = Fed(b"".join(data))
    try:
        while await next_packet(fed.read, QuickAcks()) is not None:
            pass
    except FramingError:
        pass
    assert fed.most <= LARGEST_PACKET


@pytest.mark.parametrize(("next_packet", "ack"), [(abridged_packet, b"\x84abc"), (padded_packet, b"abc\x84")])
async def test_quick_acknowledgements_are_dropped_up_to_a_bound(next_packet, ack):
    packet = bytes(range(1, 41))
    framed = (b"\x0a" if next_packet is abridged_packet else b"\x28\0\0\0") + packet
    some = Fed(ack * 50 + framed)
    assert await next_packet(some.read, QuickAcks()) == packet
    with pytest.raises(FramingError, match="not asked for"):
        await next_packet(Fed(ack * (MOST_QUICK_ACKS + 1)).read, QuickAcks())


async def test_a_line_full_of_acknowledgements_keeps_nobody_from_the_loop():
    turns = 0

    async def turn():
        nonlocal turns
        while True:
            await asyncio.sleep(0)
            turns += 1

    turning = asyncio.create_task(turn())
    with pytest.raises(FramingError):
        await abridged_packet(Fed(b"\x84abc" * (MOST_QUICK_ACKS + 1)).read, QuickAcks())
    turning.cancel()
    assert turns > MOST_QUICK_ACKS / 2


UNKNOWN = struct.pack("<I", 0x0BADBEEF) + bytes(8)


def answer_to(number: int, answer: bytes) -> bytes:
    return struct.pack("<Iq", RESULT, number) + answer


def unpacked(body: bytes):
    """What the library makes of a packet of the server's with this body."""
    auth_key, session = bytes(256), bytes(8)
    key = Key(auth_key)
    padding = -(32 + len(body) + 12) % 16 + 12
    plain = struct.pack("<qqqii", 0, 0, 5, 1, len(body)) + body + bytes(padding)
    message_key = hashlib.sha256(auth_key[96:128] + plain).digest()[8:24]
    packet = aes.ige256_encrypt(plain, *mtproto.kdf(auth_key, message_key, False))
    return mtproto.unpack(BytesIO(key.key_id + message_key + packet), session, auth_key, key.key_id).body


def test_an_answer_of_an_unknown_kind_is_told_to_its_call():
    for answer in (UNKNOWN, packed(gzip.compress(UNKNOWN))):
        read = unpacked(answer_to(7, answer))
        assert read.req_msg_id == 7
        assert "unknown kind (0x0badbeef)" in read.result.reason


def test_an_unknown_kind_takes_no_other_answer_of_its_packet_along():
    pong = struct.pack("<Iqq", 0x347773C5, 9, 9)
    bodies = (answer_to(7, UNKNOWN), UNKNOWN, answer_to(8, pong))
    messages = b"".join(
        struct.pack("<qii", number, 1, len(body)) + body
        for number, body in zip((5, 9, 13), bodies, strict=True)
    )
    result, news, other = (
        each.body for each in unpacked(Int(MsgContainer.ID, False) + Int(3) + messages).messages
    )
    assert isinstance(result.result, Unreadable)
    assert isinstance(news, Unreadable)
    assert (other.req_msg_id, other.result.ping_id) == (8, 9)


def opened_packet(key: Key, session: int, body: bytes, message_id: int) -> memoryview:
    """A packet as it is once the cipher has opened it, with its digest left to the test."""
    padding = -(32 + len(body) + 12) % 16 + 12
    head = struct.pack("<qqqii", 0, session, message_id, 1, len(body))
    return memoryview(bytearray(24) + head + body + bytes(padding))


@pytest.fixture
async def line():
    route = route_with(question(), question())
    ours, theirs = socket.socketpair()
    with ours, theirs:
        made = Line(route, ours, now=0.0)
        for _ in range(2):
            made.compose(route.next(), now=0.0)
        yield made


def handled(line, body):
    packet = opened_packet(line.route.key, line.session, body, (int(time.time() * 2**32) & ~3) | 1)
    return line.handle(packet, bytes(8) + bytes(packet[8:24]), 0.0)


def result_for(line, answer: bytes) -> bytes:
    return struct.pack("<Iq", RESULT, next(iter(line.under_way))) + answer


@pytest.mark.parametrize(
    "answer",
    [
        b"",
        struct.pack("<I", ERROR),
        struct.pack("<I", GzipPacked.ID),
        packed(bomb(64)),
        packed(gzip.compress(bytes(100))[:-1]),
        struct.pack("<Ii", VECTOR, 2**31 - 1),
        struct.pack("<Ii", VECTOR, -3) + bytes(200),
    ],
    ids=["nothing", "half an error", "an empty zip", "a bomb", "half a zip", "too many", "fewer than none"],
)
async def test_an_answer_that_cannot_be_read_fails_its_own_request_and_no_other(line, answer):
    ((_, result, error),) = handled(line, result_for(line, answer))
    assert result is None
    assert isinstance(error, RetryableError)
    assert len(line.under_way) == 1


async def test_an_answer_is_not_lost_with_what_stands_behind_it(line):
    first, second = (
        struct.pack("<Iq", RESULT, number) + struct.pack("<Ii", VECTOR, 0) for number in line.under_way
    )
    refusal = struct.pack("<Iqiii", NOTICE, 0, 0, 33, 0)
    messages = b"".join(
        struct.pack("<qii", number, 1, len(body)) + body
        for number, body in ((5, first), (9, refusal), (13, second))
    )
    answered = handled(line, Int(MsgContainer.ID, False) + Int(3) + messages)
    assert [error for _, _, error in answered] == [None, None]
    assert line.doomed is not None


@FAST
@given(
    kind=st.sampled_from([RESULT, SALT, NOTICE, MsgContainer.ID, 0x73F1F8DC]),
    number=NUMBERS,
    rest=st.binary(max_size=200),
)
def test_whatever_an_opened_packet_holds_is_handled_or_costs_the_line(kind, number, rest):
    async def once():
        route = route_with(question())
        ours, theirs = socket.socketpair()
        with ours, theirs:
            line = Line(route, ours, now=0.0)
            line.compose(route.next(), now=0.0)
            body = struct.pack("<Ii", kind, number) + rest
            with contextlib.suppress(MalformedError, LineLostError, unpacking.EnvelopeError):
                handled(line, body + bytes(-len(body) % 4))

    asyncio.run(once())


@FAST
@given(
    data=st.lists(
        st.one_of(
            st.binary(max_size=60),
            st.sampled_from([b"\xff" * 4, b"\x7f\xff\xff\xff", b"\x04\0\0\0\x6c\xfe\xff\xff", bytes(4)]),
        ),
        max_size=8,
    )
)
def test_whatever_arrives_on_a_line_is_a_packet_or_costs_the_line(data):
    async def once():
        route = route_with()
        ours, theirs = socket.socketpair()
        with ours, theirs:
            ours.setblocking(False)
            line, inbox = Line(route, ours, now=0.0), Inbox()
            theirs.sendall(b"".join(data))
            theirs.close()
            with contextlib.suppress(LineLostError, BlockingIOError):
                for _ in range(200):
                    if (packet := line.receive(inbox.buffers, 0.0)) is None:
                        continue
                    buffer, length = packet
                    assert length <= LARGEST_PACKET
                    with contextlib.suppress(unpacking.EnvelopeError):
                        route.key.job(memoryview(buffer)[:length])

    asyncio.run(once())


@FAST
@given(packet=st.binary(max_size=300), whose=st.sampled_from(["ours", "another's"]))
def test_whatever_a_packet_is_it_is_opened_or_refused(packet, whose):
    auth_key = bytes(256)
    if whose == "ours":
        packet = Key(auth_key).key_id + packet
    with pytest.raises(unpacking.EnvelopeError):
        mtproto.unpack(BytesIO(packet), bytes(8), auth_key, bytes(8))


def test_a_container_of_too_many_messages_is_refused_at_once():
    data = Int(MsgContainer.ID, False) + Int(MOST_MESSAGES + 1) + bytes(MIB)
    with pytest.raises(MalformedError, match="container of"):
        read_object(data)


@pytest.mark.parametrize(
    ("product", "found"),
    [
        (1229739323 * 1402015859, (1229739323, 1402015859)),
        (0x17ED48941A08F981, (0x494C553B, 0x53911073)),
        (15, (3, 5)),
        # A prime, an even number, a factor that is too small, nothing at all, and more than eight bytes.
        (6177436547336252729, None),
        (2 * 1402015859, None),
        (3 * (2**61 - 1), None),
        (0, None),
        (1, None),
        (1 << 200 | 1, None),
    ],
)
def test_a_product_is_two_primes_of_like_size_or_refused(product, found):
    assert factors(product) == found
