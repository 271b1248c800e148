"""Sockets to Telegram through a proxy, for the thread that carries file parts.

Dialling waits for the proxy: all lines of an account share it, so there is nothing else to do meanwhile. An
MTProxy wants every byte hidden; a tunnel of two threads does that between the line and the proxy.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import socket
import threading
from typing import TYPE_CHECKING, Any

from cryptography.hazmat.primitives.ciphers import Cipher, CipherContext, algorithms, modes
from pyrogram.connection.proxy import MTProxy, SOCKS5Proxy, uses_random_padding
from python_socks import ProxyError, ProxyType
from python_socks.sync import Proxy as Dialer

from worker.errors import FleetError
from worker.log import get_logger
from worker.telegram.framing import FramingError, QuickAcks, checked_length, unpadded

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
    dialer = Dialer(kind, proxy.hostname, proxy.port, proxy.username, proxy.password)
    try:
        dialed: socket.socket = dialer.connect(*address, timeout=_SECONDS)
    except ProxyError as error:
        raise OSError(f"the proxy refused: {error}") from error
    return dialed


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
            threading.Thread(target=self._until_the_end, args=(pump,), daemon=True).start()

    def _until_the_end(self, pump: Callable[[], None]) -> None:
        with contextlib.suppress(OSError, FleetError):
            try:
                pump()
            except FramingError as error:
                log.info("proxy.refused", reason=str(error))
        for end in (self._here, self._far):
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)

    def _say(self, data: bytes) -> None:
        self._may_send()
        self._far.sendall(data)

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
