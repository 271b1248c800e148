"""Agreeing on a key: the library does it, and every answer passes here first.

The answers come in the clear, from anybody. They are bounded before they are parsed, refused at the first
that does not belong to this exchange, and the last one has to prove that the other end has the same key:
without that check, somebody on the way could have us keep a key that no server knows.

The library keeps what is needed for that in local variables. What it gives to its own functions for factoring
and for RSA is seen by ours, which stand in their place and know which exchange they work for.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
from contextvars import ContextVar
from io import BytesIO
from typing import TYPE_CHECKING, Any

from pyrogram import raw
from pyrogram.crypto import prime, rsa
from pyrogram.raw.core import TLObject
from pyrogram.session import Auth

from worker.errors import FleetError, RetryableError
from worker.telegram.factoring import LONGEST, factors
from worker.telegram.unpacking import MalformedError, read_object

if TYPE_CHECKING:
    from collections.abc import Callable

# Key id, message id and length stand before a message in the clear.
_PLAIN_HEAD = 20
# The longest genuine answer, the parameters for the exchange, has some 650 bytes.
_LARGEST_ANSWER = 4096
_LARGEST_PARAMETERS = 1024
_MOST_FINGERPRINTS = 64
_SHA1 = 20
_TRANSPORT_ERROR = 4
_TRIES = 3

_exchange: ContextVar[KeyExchange | None] = ContextVar("exchange", default=None)


class KeyExchangeError(ConnectionError):
    """The other end did not keep to the exchange. Nothing was agreed on, and nothing is lost."""


class KeyExchange(Auth):
    """One exchange; ``create`` returns the key."""

    # ``agree_on_key`` tries again, by a deadline.
    MAX_RETRIES = 0

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.factor = 0
        self.new_nonce = b""
        self._nonces: tuple[int, int] | None = None
        self._confirmed = 0

    async def create(self) -> bytes:
        token = _exchange.set(self)
        try:
            key: bytes = await super().create()
        finally:
            _exchange.reset(token)
        auxiliary = hashlib.sha1(key, usedforsecurity=False).digest()[:8]
        proof = hashlib.sha1(self.new_nonce + b"\x01" + auxiliary, usedforsecurity=False).digest()
        if self._confirmed.to_bytes(16, "little", signed=True) != proof[-16:]:
            raise KeyExchangeError("the server does not prove that it has the same key")
        return key

    @staticmethod
    def unpack(b: BytesIO) -> Any:
        return plain_message(b.getvalue())

    async def invoke(self, data: Any) -> Any:
        """One question of the exchange, and its answer if it belongs here."""
        answer = await super().invoke(data)
        match data, answer:
            case raw.functions.ReqPqMulti(), raw.types.ResPQ():
                await self._take_product(data, answer)
            case raw.functions.ReqDHParams(), raw.types.ServerDHParamsOk():
                if not 0 < len(answer.encrypted_answer) <= _LARGEST_PARAMETERS:
                    raise KeyExchangeError(f"parameters of {len(answer.encrypted_answer)} bytes were sent")
            case raw.functions.SetClientDHParams(), raw.types.DhGenOk():
                self._confirmed = answer.new_nonce_hash1
            case _:
                asked, came = type(data).__name__, type(answer).__name__
                raise KeyExchangeError(f"{asked} was answered with {came}")
        if self._nonces != (answer.nonce, answer.server_nonce):
            raise KeyExchangeError("an answer belongs to another exchange")
        return answer

    async def _take_product(self, asked: Any, answer: Any) -> None:
        if answer.nonce != asked.nonce:
            raise KeyExchangeError("an answer belongs to another exchange")
        self._nonces = (answer.nonce, answer.server_nonce)
        known = answer.server_public_key_fingerprints
        if len(known) > _MOST_FINGERPRINTS or not any(each in rsa.server_public_keys for each in known):
            raise KeyExchangeError(
                "the server proves itself with a key that is not known here; for a server of your own,"
                " check telegram.public_key"
            )
        if len(answer.pq) > LONGEST:
            raise KeyExchangeError(
                f"a product of {len(answer.pq)} bytes was sent, at most {LONGEST} are taken"
            )
        found = await asyncio.to_thread(factors, int.from_bytes(answer.pq, "big"))
        if found is None:
            raise KeyExchangeError("the product that was sent is none of two primes of like size")
        self.factor = found[0]


async def agree_on_key(
    client: Any, dc_id: int, address: tuple[str, int], test_servers: bool, *, deadline: float
) -> bytes:
    """A key that this data centre has agreed on."""
    try:
        async with asyncio.timeout(deadline):
            for _ in range(_TRIES - 1):
                # A server may close the connection at any time.
                with contextlib.suppress(ConnectionResetError):
                    return await KeyExchange(client, dc_id, *address, test_servers).create()
            return await KeyExchange(client, dc_id, *address, test_servers).create()
    except TimeoutError:
        raise RetryableError(f"data centre {dc_id} does not agree on a key in time") from None
    except FleetError:
        raise
    except Exception as error:
        # Whatever it is that the library stumbled over: no key came of it.
        raise RetryableError(f"no key was agreed on with data centre {dc_id}: {error}") from error


def plain_message(packet: bytes) -> Any:
    """The object in a packet in the clear; none at all is the end of the connection."""
    if not packet:
        raise ConnectionResetError("the connection was closed")
    if len(packet) == _TRANSPORT_ERROR:
        raise KeyExchangeError(f"the server refused with {int.from_bytes(packet, 'little', signed=True)}")
    length = int.from_bytes(packet[16:_PLAIN_HEAD], "little")
    if any(packet[:8]) or not 0 < length <= min(len(packet) - _PLAIN_HEAD, _LARGEST_ANSWER):
        raise KeyExchangeError("what came is no message of the exchange")
    try:
        return read_object(packet[_PLAIN_HEAD : _PLAIN_HEAD + length])
    except MalformedError as error:
        raise KeyExchangeError(str(error)) from error


def _decompose(product: int, *, library: Callable[[int], int] = prime.decompose) -> int:
    """The factor that was found beside the event loop, before the library asks for it."""
    current = _exchange.get()
    return library(product) if current is None else current.factor


def _encrypt(data: bytes, fingerprint: int, *, library: Callable[[bytes, int], bytes] = rsa.encrypt) -> bytes:
    current = _exchange.get()
    if current is not None:
        inner = TLObject.read(BytesIO(data[_SHA1:]))
        current.new_nonce = inner.new_nonce.to_bytes(32, "little", signed=True)
    return library(data, fingerprint)


def install() -> None:
    """Have the library's exchange factor and encrypt by way of this module."""
    prime.decompose, rsa.encrypt = _decompose, _encrypt
