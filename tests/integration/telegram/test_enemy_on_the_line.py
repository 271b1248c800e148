"""Somebody sits between us and Telegram, and writes what he likes."""

import asyncio
import contextlib
import math
import socket
import threading
from io import BytesIO

import pytest
from enemy_line import KEY_UNKNOWN, enemy_between, let_pass
from hang_guard import HANG_SECONDS, until
from proxy_servers import SECRET, Mtproto, running
from pyrogram import raw
from pyrogram.raw.core import TLObject
from transfer_bench import MIB, Permitting, open_desk

from worker.errors import OutcomeUnknownError, RetryableError
from worker.telegram.client import Server
from worker.telegram.gateway import Gateway
from worker.telegram.proxied import dial_through
from worker.telegram.proxy import parse_proxy
from worker.telegram.tether import Tether

SIZE = 3 * MIB + 777


@pytest.fixture
async def enemy(shared_telegram):
    facts = shared_telegram.facts
    async with enemy_between(facts["host"], facts["port"]) as line:
        yield line


@pytest.fixture
async def desk(shared_telegram, enemy, tmp_path, request):
    phone = f"+4988{abs(hash(request.node.name)) % 10**7:07}"
    async with open_desk(shared_telegram, phone, tmp_path, deadline=2, port=enemy.port) as opened:
        yield opened
    await shared_telegram.admin.clear_rules()


def stranger(enemy, **options):
    """An account that has never been logged in, which has to agree on a key first."""
    return Gateway(
        Server(1, "0" * 32, "127.0.0.1", enemy.port), permission=Permitting(), deadline=5, **options
    )


async def _call(desk):
    return await desk.gateway.connections.call(raw.functions.help.GetConfig())


async def _answers(desk):
    """Whether a call is answered. What would end the account is raised, and ends the test."""
    try:
        await _call(desk)
    except (RetryableError, OutcomeUnknownError):
        return False
    return True


def refusing(times, *, files):
    """An answer in the server's place to the first connections of this kind."""
    refused = []

    def answer(passage):
        if passage.is_for_files is not files or len(refused) >= times:
            return None
        refused.append(passage)
        return passage.frame(KEY_UNKNOWN)

    return answer, refused


async def test_a_refusal_in_the_clear_logs_nobody_out(enemy, desk):
    enemy.answer, refused = refusing(3, files=False)
    enemy.cut()
    await until(lambda: _answers(desk))
    assert len(refused) == 3


async def test_a_refusal_in_the_clear_on_the_lines_for_files_ends_no_account(enemy, desk):
    posted, digest = await desk.post(SIZE)
    enemy.answer, refused = refusing(6, files=True)
    assert await desk.download(posted) == digest
    assert len(refused) == 6


async def test_acknowledgements_that_nobody_asked_for_are_read_and_dropped(enemy, desk):
    posted, digest = await desk.post(SIZE)
    enemy.tamper = lambda passage, packet: passage.quick_ack + passage.frame(packet)
    enemy.cut()
    before = len(enemy.passages)
    await until(lambda: _answers(desk))
    assert await desk.download(posted) == digest
    assert await desk.publish(desk.folder / "part-0") == digest
    files = [passage for passage in enemy.passages[before:] if passage.is_for_files]
    assert len(files) <= 8, "no line was lost by them"


async def test_a_stream_of_nothing_but_acknowledgements_is_given_up(enemy, desk):
    posted, digest = await desk.post(SIZE)
    spoilt = []

    def flood(passage, packet):
        if passage.is_for_files and len(spoilt) < 2:
            spoilt.append(passage)
            return passage.quick_ack * 2000
        return let_pass(passage, packet)

    enemy.tamper = flood
    assert await desk.download(posted) == digest
    assert len(spoilt) == 2


async def test_packets_that_are_not_the_servers_cost_a_connection_and_nothing_else(enemy, desk):
    """An envelope is proven before anything in it is read, on both kinds of connection."""
    spoilt = {}

    def spoil(passage, packet):
        if spoilt.setdefault(passage.is_for_files, 0) < 2 and len(packet) > 64:
            spoilt[passage.is_for_files] += 1
            return passage.frame(packet[:40] + bytes(len(packet) - 40))
        return let_pass(passage, packet)

    posted, digest = await desk.post(SIZE)
    enemy.tamper = spoil
    await until(lambda: _answers(desk))
    assert await desk.download(posted) == digest
    assert spoilt == {False: 2, True: 2}


async def test_a_connection_whose_goodbye_is_not_answered_is_not_taken_for_closed(
    shared_telegram, enemy, tmp_path
):
    """A network that swallows every packet swallows the end of a connection too."""
    for number, said, is_dead in ((1, let_pass, False), (2, lambda *_: b"", True)):
        told = []
        options = {"port": enemy.port, "tether": Tether(parted=told.append)}
        async with open_desk(shared_telegram, f"+49888000{number}", tmp_path, **options) as desk:
            posted, digest = await desk.post(SIZE)
            assert await desk.download(posted) == digest
            enemy.tamper = said
        assert len(told) > 1, "each line for files is told of as well"
        assert (max(told) > HANG_SECONDS) is is_dead


async def test_a_connection_that_is_lost_by_silence_is_not_taken_for_closed(enemy, desk):
    """It is the wait for its next packet that ends, and nobody at the other end may know."""
    told, lost = [], asyncio.Event()
    session = desk.gateway.connections.main

    def parted(silent):
        told.append(silent)
        lost.set()

    session.tether = Tether(parted=parted)
    session.connection.recv = _nothing
    await _answers(desk)
    async with asyncio.timeout(HANG_SECONDS):
        await lost.wait()
    assert told == [math.inf]


async def _nothing():
    """What the library's connection says after ten seconds without a byte, and at its end."""


def in_the_clear(change):
    """A tamper that rewrites the server's messages of the key exchange."""

    def tamper(passage, packet):
        if any(packet[:8]):
            return passage.frame(packet)
        answer = TLObject.read(BytesIO(packet[20:]))
        change(answer)
        body = answer.write()
        return passage.frame(packet[:16] + len(body).to_bytes(4, "little") + body)

    return tamper


def larger_product(answer):
    if isinstance(answer, raw.types.ResPQ):
        answer.pq = b"\x7f" * 400


def prime_product(answer):
    if isinstance(answer, raw.types.ResPQ):
        answer.pq = (6177436547336252729).to_bytes(8, "big")


def long_parameters(answer):
    if isinstance(answer, raw.types.ServerDHParamsOk):
        answer.encrypted_answer = bytes(2048)


def other_nonce(answer):
    if isinstance(answer, raw.types.ServerDHParamsOk):
        answer.server_nonce ^= 1


def other_confirmation(answer):
    if isinstance(answer, raw.types.DhGenOk):
        answer.new_nonce_hash1 ^= 1


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (larger_product, "400 bytes"),
        (long_parameters, "2048 bytes"),
        (other_nonce, "another exchange"),
        (other_confirmation, "does not prove that it has the same key"),
    ],
)
async def test_no_key_is_kept_of_an_exchange_that_somebody_changed(shared_telegram, enemy, change, reason):
    shared_telegram.trust()
    enemy.tamper = in_the_clear(change)
    gateway = stranger(enemy)
    try:
        with pytest.raises(RetryableError, match=reason):
            await gateway.connect()
        assert await gateway._storage.auth_key() is None
        enemy.tamper = let_pass
        await gateway.connect()
        assert await gateway._storage.auth_key() is not None
    finally:
        await gateway.close()


async def test_the_event_loop_goes_on_while_a_product_is_factored(shared_telegram, enemy):
    shared_telegram.trust()
    enemy.tamper = in_the_clear(prime_product)
    gateway = stranger(enemy)
    turns = 0

    async def turn():
        nonlocal turns
        while True:
            await asyncio.sleep(0)
            turns += 1

    turning = asyncio.create_task(turn())
    try:
        with pytest.raises(RetryableError, match="none of two primes"):
            await gateway.connect()
    finally:
        turning.cancel()
        await gateway.close()
    assert turns > 100


class _Boasting(Mtproto):
    """A proxy that announces far more than anybody would send."""

    async def greet(self, reader, writer) -> None:
        await reader.readexactly(64)
        writer.write(b"\x7f" * 64)
        await reader.read()


async def test_a_proxy_that_announces_more_than_16_mib_is_hung_up_on():
    async with running(_Boasting(("127.0.0.1", 1))) as proxy:
        link = f"tg://proxy?server=127.0.0.1&port={proxy.port}&secret=dd{SECRET.hex()}"
        near = await asyncio.to_thread(dial_through, parse_proxy(link), ("127.0.0.1", 1), 2, lambda: None)
        near.settimeout(HANG_SECONDS)
        # What is announced is read through a cipher: at every other connection the top bit is set.
        with near:
            assert await asyncio.to_thread(near.recv, 1) == b""


class _Deaf(Mtproto):
    """A proxy that takes what fits into its buffers, and never reads it."""

    async def greet(self, reader, writer) -> None:
        await reader.readexactly(64)
        writer.transport.pause_reading()
        await asyncio.Event().wait()


async def test_a_line_that_is_given_up_leaves_nothing_behind_at_a_proxy_that_does_not_read():
    async with running(_Deaf(("127.0.0.1", 1))) as proxy:
        link = f"tg://proxy?server=127.0.0.1&port={proxy.port}&secret=dd{SECRET.hex()}"
        near = await asyncio.to_thread(dial_through, parse_proxy(link), ("127.0.0.1", 1), 2, lambda: None)
        with near:
            await asyncio.to_thread(_fill, near)
            tunnel = [each for each in threading.enumerate() if each.name == "tunnel to a proxy"]
            near.shutdown(socket.SHUT_RDWR)
            for thread in tunnel:
                await asyncio.to_thread(thread.join, HANG_SECONDS)
                assert not thread.is_alive()


def _fill(near):
    """Until nothing more has been taken for a second: then all buffers on the way are full."""
    near.settimeout(1)
    with contextlib.suppress(TimeoutError):
        while True:
            near.send(bytes(MIB))
