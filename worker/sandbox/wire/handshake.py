"""The key exchange, seen from the server: req_pq, req_DH_params, set_client_DH_params."""

from __future__ import annotations

import hashlib
import os
import time
from dataclasses import dataclass
from typing import Any

from pyrogram import raw
from pyrogram.crypto import aes, prime

from worker.cipher import ige
from worker.sandbox.tl import read
from worker.sandbox.wire.envelope import key_id
from worker.sandbox.wire.rsa_key import RsaKey, inner_message

DH_PRIME = prime.CURRENT_DH_PRIME
GENERATOR = 3
# Two fixed primes below 2^31 are enough on loopback: pq proves the client's work, it hides nothing.
P, Q = 1229739323, 1402015859
INNER_DATA = (
    raw.types.PQInnerData,
    raw.types.PQInnerDataDc,
    raw.types.PQInnerDataTemp,
    raw.types.PQInnerDataTempDc,
)


class HandshakeError(ConnectionError):
    """The client broke the key exchange; the connection is closed."""


@dataclass(frozen=True, slots=True)
class NewKey:
    """What a finished exchange leaves behind. ``expires_in`` is set for temporary keys."""

    auth_key: bytes
    key_id: int
    salt: int
    dc_id: int | None
    expires_in: int | None


class Handshake:
    """One client's exchange; answers plain messages until ``finished`` holds the key."""

    def __init__(self, key: RsaKey) -> None:
        self._key = key
        self._nonce = 0
        self._server_nonce = int.from_bytes(os.urandom(16), "little", signed=True)
        self._new_nonce = b""
        self._secret = 0
        self._inner: Any = None
        self.finished: NewKey | None = None

    def answer(self, query: Any) -> Any:
        """Return the server's answer to one plain message."""
        match query:
            case raw.functions.ReqPqMulti() | raw.functions.ReqPq():
                return self._res_pq(query)
            case raw.functions.ReqDHParams():
                return self._dh_params(query)
            case raw.functions.SetClientDHParams():
                return self._dh_gen(query)
            case raw.types.MsgsAck():
                return None
        raise HandshakeError(f"{type(query).__name__} is not part of the key exchange")

    def _res_pq(self, query: Any) -> Any:
        self._nonce = query.nonce
        return raw.types.ResPQ(
            nonce=query.nonce,
            server_nonce=self._server_nonce,
            pq=(P * Q).to_bytes(8, "big"),
            server_public_key_fingerprints=[self._key.fingerprint],
        )

    def _dh_params(self, query: Any) -> Any:
        self._check_nonces(query)
        if query.public_key_fingerprint != self._key.fingerprint:
            raise HandshakeError("the client encrypted for another RSA key")
        inner = self._read_inner(query.encrypted_data)
        self._check_nonces(inner)
        if int.from_bytes(inner.p, "big") != P or int.from_bytes(inner.q, "big") != Q:
            raise HandshakeError("pq was not factored rightly")
        self._inner = inner
        self._new_nonce = inner.new_nonce.to_bytes(32, "little", signed=True)
        # As strong as the prime, and an eighth of the work of an exponent of its length.
        self._secret = int.from_bytes(os.urandom(32), "big")
        answer = raw.types.ServerDHInnerData(
            nonce=self._nonce,
            server_nonce=self._server_nonce,
            g=GENERATOR,
            dh_prime=DH_PRIME.to_bytes(256, "big"),
            g_a=pow(GENERATOR, self._secret, DH_PRIME).to_bytes(256, "big"),
            server_time=int(time.time()),
        ).write()
        hashed = hashlib.sha1(answer, usedforsecurity=False).digest() + answer
        return raw.types.ServerDHParamsOk(
            nonce=self._nonce,
            server_nonce=self._server_nonce,
            encrypted_answer=ige.encrypt(hashed + os.urandom(-len(hashed) % 16), *self._temporary_aes()),
        )

    def _dh_gen(self, query: Any) -> Any:
        self._check_nonces(query)
        if self._inner is None:
            raise HandshakeError("set_client_DH_params came before req_DH_params")
        plain = ige.decrypt(query.encrypted_data, *self._temporary_aes())
        client = read(plain[20:])
        self._check_hash(plain, client)
        self._check_nonces(client)
        g_b = int.from_bytes(client.g_b, "big")
        # A public value near either end would leave hardly any secret.
        if not 2**1984 < g_b < DH_PRIME - 2**1984:
            raise HandshakeError("g_b is out of bounds")
        auth_key = pow(g_b, self._secret, DH_PRIME).to_bytes(256, "big")
        server_nonce = self._server_nonce.to_bytes(16, "little", signed=True)
        self.finished = NewKey(
            auth_key=auth_key,
            key_id=key_id(auth_key),
            salt=int.from_bytes(aes.xor(self._new_nonce[:8], server_nonce[:8]), "little", signed=True),
            dc_id=getattr(self._inner, "dc", None),
            expires_in=getattr(self._inner, "expires_in", None),
        )
        auxiliary = hashlib.sha1(auth_key, usedforsecurity=False).digest()[:8]
        confirmation = hashlib.sha1(self._new_nonce + b"\x01" + auxiliary, usedforsecurity=False).digest()
        return raw.types.DhGenOk(
            nonce=self._nonce,
            server_nonce=self._server_nonce,
            new_nonce_hash1=int.from_bytes(confirmation[-16:], "little", signed=True),
        )

    def _read_inner(self, encrypted: bytes) -> Any:
        message = inner_message(self._key, encrypted)
        if message is None:
            raise HandshakeError("the inner data is padded in no known way")
        inner = read(message[20:])
        if not isinstance(inner, INNER_DATA):
            raise HandshakeError("the inner data is of an unknown kind")
        if message[:20] != bytes(20):
            self._check_hash(message, inner)
        return inner

    def _check_hash(self, plain: bytes, parsed: Any) -> None:
        if hashlib.sha1(parsed.write(), usedforsecurity=False).digest() != plain[:20]:
            raise HandshakeError("the hash of an inner message is wrong")

    def _check_nonces(self, message: Any) -> None:
        if message.nonce != self._nonce or message.server_nonce != self._server_nonce:
            raise HandshakeError("a nonce does not belong to this exchange")

    def _temporary_aes(self) -> tuple[bytes, bytes]:
        new, server = self._new_nonce, self._server_nonce.to_bytes(16, "little", signed=True)
        first = hashlib.sha1(new + server, usedforsecurity=False).digest()
        second = hashlib.sha1(server + new, usedforsecurity=False).digest()
        third = hashlib.sha1(new + new, usedforsecurity=False).digest()
        return first + second[:12], second[12:] + third + new[:4]
