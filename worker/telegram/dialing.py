"""How connections are made: to which server, from which address, through which proxy, on which tether."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from typing import TYPE_CHECKING, Any

from pyrogram.connection import Connection
from pyrogram.connection.connection import transport_class_for
from pyrogram.connection.transport import TCPAbridged, TCPIntermediatePadded
from pyrogram.connection.transport.tcp.tcp import TCP

from worker.telegram.framing import QuickAcks, abridged_packet, padded_packet
from worker.telegram.proxy import refusal_as_loss
from worker.telegram.tether import TetheredSocket

if TYPE_CHECKING:
    from collections.abc import Callable

    from worker.telegram.client import Server
    from worker.telegram.tether import Tether


# A packet of four bytes is an error of the transport itself.
_TOO_MANY_CONNECTIONS = (-429).to_bytes(4, "little", signed=True)


def connection_class(server: Server, tether: Tether) -> type[Any]:
    """A connection of the library whose sockets are ours, whatever framing a proxy's secret asks for."""

    class FleetConnection(Connection):
        def __init__(self, *args: Any, **kwargs: Any) -> None:
            super().__init__(*args, **kwargs)
            if server.host is not None:
                # It stands for every data centre, whatever address the library has in mind.
                self.server_address, self.port = server.host, server.port
            framing: type[Any] = transport_class_for(self.proxy, default=TCPAbridged)
            self.protocol_factory = _own_sockets(framing, server.bind_address, tether.may_send)

        async def connect(self) -> None:
            if (pause := tether.wait_to_dial()) > 0:
                await asyncio.sleep(pause)
            await super().connect()

        async def close(self) -> None:
            # While it waits to dial there is nothing to close.
            if self.protocol is not None:
                await super().close()

        async def recv(self) -> bytes | None:
            packet: bytes | None = await super().recv()
            if packet == _TOO_MANY_CONNECTIONS:
                tether.crowded()
            return packet

    return FleetConnection


def _own_sockets(framing: type[Any], bind_address: str | None, may_send: Callable[[], None]) -> type[Any]:
    next_packet = padded_packet if issubclass(framing, TCPIntermediatePadded) else abridged_packet

    class FleetTransport(framing):
        def __init__(self, *args: Any, **kwargs: Any) -> None:
            super().__init__(*args, **kwargs)
            self._quick_acks = QuickAcks()

        async def recv(self, length: int = 0) -> bytes | None:  # noqa: ARG002 - the library's signature
            return await next_packet(self._read, self._quick_acks)

        async def _read(self, length: int) -> bytes | None:
            # Below the library's framing, and above what hides the bytes on the way to a proxy.
            data: bytes | None = await TCP.recv(self, length)
            return data

        async def _recv_from_socket(self, length: int) -> bytes | None:
            return None if self.reader is None else await _exactly(self.reader, length)

        async def _connect_via_direct(
            self, destination: tuple[str, int], *, family: int | None = None
        ) -> None:
            dialed = await _dial(destination, family or 0, bind_address)
            await self._speak_on(dialed)

        async def _connect_via_proxy(self, destination: tuple[str, int]) -> None:
            proxy = await self._build_proxy()
            host, port = destination
            with refusal_as_loss():
                dialed = await proxy.connect(dest_host=host, dest_port=port, timeout=TCP.TIMEOUT)
            await self._speak_on(TetheredSocket(fileno=dialed.detach()))

        async def _speak_on(self, dialed: TetheredSocket) -> None:
            dialed.may_send = may_send
            self._enable_keepalive(dialed)
            self.reader, self.writer = await asyncio.open_connection(sock=dialed)

    return FleetTransport


async def _exactly(reader: asyncio.StreamReader, length: int) -> bytes | None:
    """So many bytes; None if the connection ended, or nothing came for too long."""
    data = bytearray()
    while len(data) < length:
        try:
            async with asyncio.timeout(TCP.TIMEOUT):
                chunk = await reader.read(length - len(data))
        except OSError:
            return None
        if not chunk:
            return None
        data += chunk
    return bytes(data)


async def _dial(destination: tuple[str, int], family: int, bind_address: str | None) -> TetheredSocket:
    loop = asyncio.get_running_loop()
    failure: OSError = OSError(f"{destination[0]} has no address")
    for kind, _, _, _, address in await loop.getaddrinfo(
        *destination, family=family, type=socket.SOCK_STREAM
    ):
        dialed = TetheredSocket(kind, socket.SOCK_STREAM)
        with contextlib.ExitStack() as unless_connected:
            unless_connected.callback(dialed.close)
            dialed.setblocking(False)
            try:
                if bind_address is not None:
                    dialed.bind((bind_address, 0))
                await loop.sock_connect(dialed, address)
            except OSError as error:
                failure = error
                continue
            unless_connected.pop_all()
            return dialed
    raise failure
