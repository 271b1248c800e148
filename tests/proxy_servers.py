"""Small real proxies on loopback, and what passed through them."""

import asyncio
import contextlib
import hashlib
from collections.abc import AsyncIterator
from dataclasses import dataclass

from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

USER, PASSWORD = "ada", "password"
# Where the proxies' own connections start from, as the server sees them.
OUTSIDE = "127.0.0.9"
SECRET = bytes(range(16))


class ProxyServer:
    """Counts the connections that it let through, from where it stands."""

    def __init__(self, target: tuple[str, int]) -> None:
        self.target = target
        self.passed = 0
        self.port = 0

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError, asyncio.IncompleteReadError):
            await self.greet(reader, writer)
        writer.close()

    async def greet(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        raise NotImplementedError

    async def relay(self, reader, writer, host, port, decrypt=None, encrypt=None, first=b"") -> None:
        self.passed += 1
        far_reader, far_writer = await asyncio.open_connection(host, port, local_addr=(OUTSIDE, 0))
        far_writer.write(first)
        await asyncio.gather(_pump(reader, far_writer, decrypt), _pump(far_reader, writer, encrypt))


async def _pump(reader, writer, cipher) -> None:
    with contextlib.suppress(OSError):
        while data := await reader.read(65536):
            writer.write(cipher.update(data) if cipher else data)
            await writer.drain()
    with contextlib.suppress(OSError):
        writer.close()


class Socks5(ProxyServer):
    """RFC 1928 with the user name and password of RFC 1929."""

    async def greet(self, reader, writer) -> None:
        _, count = await reader.readexactly(2)
        await reader.readexactly(count)
        writer.write(b"\x05\x02")
        _, length = await reader.readexactly(2)
        user = await reader.readexactly(length)
        password = await reader.readexactly((await reader.readexactly(1))[0])
        granted = (user.decode(), password.decode()) == (USER, PASSWORD)
        writer.write(b"\x01" + (b"\x00" if granted else b"\x01"))
        if not granted:
            return
        _, _, _, kind = await reader.readexactly(4)
        if kind == 1:
            host = ".".join(str(byte) for byte in await reader.readexactly(4))
        else:
            host = (await reader.readexactly((await reader.readexactly(1))[0])).decode()
        port = int.from_bytes(await reader.readexactly(2), "big")
        writer.write(b"\x05\x00\x00\x01" + bytes(6))
        await self.relay(reader, writer, host, port)


class Http(ProxyServer):
    """CONNECT, as RFC 9110 has it."""

    async def greet(self, reader, writer) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        host, port = head.split()[1].rsplit(":", 1)
        writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
        await self.relay(reader, writer, host, int(port))


class Mtproto(ProxyServer):
    """Takes hidden streams that know its secret, and speaks plainly to the server."""

    async def greet(self, reader, writer) -> None:
        header = await reader.readexactly(64)
        seed = header[8:56]
        decrypt, encrypt = _cipher(seed), _cipher(seed[::-1])
        tag = decrypt.update(header)[56:60]
        first = {b"\xef" * 4: b"\xef", b"\xee" * 4: b"\xee" * 4, b"\xdd" * 4: b"\xdd" * 4}[tag]
        await self.relay(reader, writer, *self.target, decrypt, encrypt, first)


def _cipher(seed: bytes):
    key = hashlib.sha256(seed[:32] + SECRET).digest()
    return Cipher(algorithms.AES(key), modes.CTR(seed[32:48])).encryptor()


@contextlib.asynccontextmanager
async def running(proxy: ProxyServer) -> AsyncIterator[ProxyServer]:
    server = await asyncio.start_server(proxy.serve, "127.0.0.1", 0)
    proxy.port = server.sockets[0].getsockname()[1]
    try:
        yield proxy
    finally:
        server.close()


@dataclass(frozen=True, slots=True)
class Kind:
    """A proxy, how an account is told to use it, and what of that nobody may read."""

    server: type[ProxyServer]
    link: str
    secrets: tuple[str, ...] = ()


_HEX = SECRET.hex()
KINDS = {
    "socks5": Kind(Socks5, f"socks5://{USER}:{PASSWORD}@127.0.0.1:{{}}", (f"{USER}:{PASSWORD}",)),
    "http": Kind(Http, "http://127.0.0.1:{}"),
    "mtproxy": Kind(Mtproto, f"tg://proxy?server=127.0.0.1&port={{}}&secret={_HEX}", (_HEX,)),
    "mtproxy, padded": Kind(Mtproto, f"tg://proxy?server=127.0.0.1&port={{}}&secret=dd{_HEX}", (_HEX,)),
}


def link_to(kind: str, proxy: ProxyServer) -> str:
    return KINDS[kind].link.format(proxy.port)
