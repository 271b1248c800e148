"""A proxy refuses, talks nonsense or hangs up: that is a lost connection like any other, and tells no secret."""

import asyncio
import contextlib

import pytest
from hang_guard import HANG_SECONDS
from pyrogram import raw

from worker.errors import UnreachableError, UserError
from worker.telegram import proxied
from worker.telegram.client import FleetClient, Server
from worker.telegram.dialing import connection_class
from worker.telegram.doubts import KeyDoubts
from worker.telegram.proxied import dial_through
from worker.telegram.proxy import parse_proxy
from worker.telegram.session import FleetSession
from worker.telegram.storage import MemoryStorage
from worker.telegram.streak import Streak
from worker.telegram.tether import LOOSE, Tether

FAR = ("192.0.2.1", 443)
SOCKS, HTTP = "socks5://127.0.0.1:{}", "http://127.0.0.1:{}"
GRANTED = b"\x05\x00"
ANSWERS = [
    (SOCKS, [b"\x05\xff"]),
    (SOCKS, [b"\x05"]),
    (SOCKS, [b""]),
    (SOCKS, [b"HTTP/1.1 400 no\r\n\r\n"]),
    (SOCKS, [GRANTED, b"\x05\x04\x00\x01" + bytes(6)]),
    (SOCKS, [GRANTED, b"\x05\x00\x00\x03\x02\xff\xfe" + bytes(2)]),
    (HTTP, [b"HTTP/1.1 503 Service unavailable\r\n\r\n"]),
    (HTTP, [b"HTTP/1.1 20\xff nonsense\r\n\r\n"]),
    (HTTP, [b""]),
]


@contextlib.asynccontextmanager
async def proxy_saying(answers):
    async def serve(reader, writer):
        for answer in answers:
            await reader.read(1000)
            writer.write(answer)
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()


@pytest.mark.parametrize(("link", "answers"), ANSWERS)
async def test_a_proxy_that_does_not_let_us_through_is_a_connection_that_failed(link, answers):
    async with proxy_saying(answers) as port:
        proxy = parse_proxy(link.format(port))
        connection = connection_class(Server(1, "", proxy=link), LOOSE)(2, *FAR, test_mode=False, proxy=proxy)
        transport = connection.protocol_factory(proxy=proxy, loop=asyncio.get_running_loop())
        with pytest.raises(OSError):  # noqa: PT011 - whatever the proxy has said, in whatever words
            await transport.connect(FAR)
        with pytest.raises(OSError):  # noqa: PT011
            await asyncio.to_thread(dial_through, proxy, FAR, 2, lambda: None)


async def test_a_proxy_that_answers_a_byte_now_and_then_is_hung_up_on(monkeypatch):
    """All lines of the account wait while one is dialled."""
    monkeypatch.setattr(proxied, "_SECONDS", 0.5)
    dripped = 0

    async def serve(reader, writer):
        nonlocal dripped
        await reader.read(1000)
        writer.write(GRANTED)
        await reader.read(1000)
        writer.write(b"\x05\x00\x00\x03\xff")
        while not await _said_something(reader, within=0.05):
            dripped += 1
            writer.write(b"x")

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with server:
        proxy = parse_proxy(SOCKS.format(server.sockets[0].getsockname()[1]))
        with pytest.raises(OSError):  # noqa: PT011
            await asyncio.to_thread(dial_through, proxy, FAR, 2, lambda: None)
    assert dripped < 250


async def _said_something(reader, *, within):
    try:
        await asyncio.wait_for(reader.read(1), within)
    except TimeoutError:
        return False
    return True


@pytest.mark.parametrize("link", ["socks5://ada:verborgén@h:1", "http://ada:verborgenł@h:1"])
def test_a_password_that_no_proxy_can_be_told_is_refused_and_not_repeated(link):
    """The library writes it in letters of its own, and names it whole where it cannot."""
    with pytest.raises(UserError) as refused:
        parse_proxy(link)
    assert "verborg" not in str(refused.value)


async def test_a_session_that_cannot_connect_again_says_so_to_whoever_calls():
    """Otherwise its account would wait for a connection that nobody makes any more."""

    def unforeseen():
        raise RuntimeError("out of tune")

    server = Server(1, "", "127.0.0.1", 1)
    tether = Tether(wait_to_dial=unforeseen)
    storage = MemoryStorage(dc_id=2, auth_key=bytes(256))
    client = FleetClient(server, storage, on_update=lambda: None, tether=tether)
    session = FleetSession(
        client,
        2,
        server.host,
        server.port,
        bytes(256),
        False,
        doubts=KeyDoubts(),
        streak=Streak(HANG_SECONDS),
    )
    session.tie(tether)
    await session.restart()
    with pytest.raises(UnreachableError, match="out of tune"):
        await session.call(raw.functions.help.GetConfig(), deadline=HANG_SECONDS)
