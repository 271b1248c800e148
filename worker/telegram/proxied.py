"""Sockets to Telegram through a proxy, for the thread that carries file parts.

Dialling waits for the proxy: all lines of an account share it, so there is nothing else to do meanwhile. An
MTProxy wants every byte hidden; a tunnel of two threads does that between the line and the proxy.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import select
import socket
import threading
from typing import TYPE_CHECKING, Any, Self

from cryptography.hazmat.primitives.ciphers import Cipher, CipherContext, algorithms, modes
from pyrogram.connection.proxy import MTProxy, SOCKS5Proxy, uses_random_padding
from python_socks import ProxyType
from python_socks.sync import Proxy as Dialer

from worker.errors import FleetError
from worker.log import get_logger
from worker.telegram.framing import FramingError, QuickAcks, checked_length, unpadded
from worker.telegram.proxy import refusal_as_loss

if TYPE_CHECKING:
    from collections.abc import Callable

log = get_logger(__name__)
_SECONDS = 10.0
_CHUNK = 256 * 1024
_TAGS = {False: b"\xee" * 4, True: b"\xdd" * 4}
# What a hidden stream must not begin with: other framings, and words that proxies take for something else.
_TAKEN = (b"\xef", b"HEAD", b"POST", b"GET ", b"OPTI", b"\xee" * 4, b"\xdd" * 4, b"\x16\x03\x01\x02")


def dial_through(
    proxy: Any, address: tuple[str, int], dc_id: int, may_send: Callable[[], None]
) -> socket.socket:
    """A socket on which the server at ``address`` answers; ``OSError`` if the proxy does not let us."""
    if isinstance(proxy, MTProxy):
        far = socket.create_connection((proxy.hostname, proxy.port), timeout=_SECONDS)
        return _Tunnel(far, proxy, dc_id, may_send).near
    kind = ProxyType.SOCKS5 if isinstance(proxy, SOCKS5Proxy) else ProxyType.HTTP
    with _Patience() as patience, refusal_as_loss():
        who = (proxy.username, proxy.password)
        # Of what it goes by, the library asks for nothing but to be connected.
        before: Any = patience
        dialer = Dialer(kind, proxy.hostname, proxy.port, *who, forward=before)
        dialed: socket.socket = dialer.connect(*address, timeout=_SECONDS)
    return dialed


class _Patience:
    """Opens the way to a proxy, and cuts it when it takes too long to be let through.

    The library knows a time for each answer only: a byte now and then would hold up all lines for hours.
    """

    _timer: threading.Timer | None = None

    def connect(self, dest_host: str, dest_port: int, timeout: float) -> socket.socket:
        far = socket.create_connection((dest_host, dest_port), timeout=timeout)
        self._timer = threading.Timer(timeout, _cut, (far,))
        self._timer.daemon = True
        self._timer.start()
        return far

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._timer is not None:
            self._timer.cancel()


def _cut(end: socket.socket) -> None:
    with contextlib.suppress(OSError):
        end.shutdown(socket.SHUT_RDWR)


class _Tunnel:
    """Hides what goes to an MTProxy and shows what comes back, until either side ends."""

    def __init__(self, far: socket.socket, proxy: MTProxy, dc_id: int, may_send: Callable[[], None]) -> None:
        self.near, self._here = socket.socketpair()
        self._far = far
        self._may_send = may_send
        far.settimeout(None)
        is_padded = uses_random_padding(proxy)
        header, self._hide, self._show = hidden_header(proxy.secret[-16:], _TAGS[is_padded], dc_id)
        self._say(header)
        for pump in (self._outward, self._inward):
            threading.Thread(
                target=self._until_the_end, args=(pump,), name="tunnel to a proxy", daemon=True
            ).start()

    def _until_the_end(self, pump: Callable[[], None]) -> None:
        with contextlib.suppress(OSError, FleetError):
            try:
                pump()
            except FramingError as error:
                log.info("proxy.refused", reason=str(error))
        for end in (self._here, self._far):
            _cut(end)

    def _say(self, data: bytes) -> None:
        """All of it, as the proxy takes it, and nothing more once the line is given up or may not send."""
        ready = select.poll()
        ready.register(self._far, select.POLLOUT)
        # Asks for nothing, so that only its end is reported.
        ready.register(self._here, 0)
        left = memoryview(data)
        while left:
            if self._here.fileno() in dict(ready.poll()):
                raise OSError("the line was given up")
            self._may_send()
            with contextlib.suppress(BlockingIOError):
                left = left[self._far.send(left, socket.MSG_DONTWAIT) :]

    def _outward(self) -> None:
        # The line begins by naming its framing, which the header has said.
        _exactly(self._here, 4)
        while data := self._here.recv(_CHUNK):
            self._say(self._hide.update(data))

    def _inward(self) -> None:
        acks = QuickAcks()
        while True:
            length = int.from_bytes(self._show.update(_exactly(self._far, 4)), "little")
            if length >> 31:
                acks.dropped()
                continue
            packet = self._show.update(_exactly(self._far, checked_length(length)))
            packet = packet[: unpadded(length)]
            self._here.sendall(len(packet).to_bytes(4, "little") + packet)


def hidden_header(secret: bytes, tag: bytes, dc_id: int) -> tuple[bytes, CipherContext, CipherContext]:
    """The first 64 bytes of a hidden stream, and the ciphers for what follows it, to and fro."""
    start = os.urandom(64)
    while start.startswith(_TAKEN) or start[4:8] == bytes(4):
        start = os.urandom(64)
    start = start[:56] + tag + dc_id.to_bytes(2, "little", signed=True) + start[62:]
    seed = start[8:56]
    hide, show = _cipher(seed, secret), _cipher(seed[::-1], secret)
    return start[:56] + hide.update(start)[56:], hide, show


def _cipher(seed: bytes, secret: bytes) -> CipherContext:
    key = hashlib.sha256(seed[:32] + secret).digest()
    return Cipher(algorithms.AES(key), modes.CTR(seed[32:48])).encryptor()


def _exactly(end: socket.socket, length: int) -> bytes:
    data = bytearray()
    while len(data) < length:
        if not (more := end.recv(length - len(data))):
            raise OSError("the connection was closed")
        data += more
    return bytes(data)
