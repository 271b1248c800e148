"""The library's client, used as what sessions need around them: server, identity, storage."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey
from cryptography.hazmat.primitives.serialization import load_pem_public_key
from pyrogram import Client, raw
from pyrogram.crypto import rsa
from pyrogram.raw.all import layer

from worker.errors import UserError
from worker.telegram import aes_backend, key_exchange, unpacking
from worker.telegram.dialing import connection_class
from worker.telegram.proxy import parse_proxy

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from worker.telegram.storage import MemoryStorage
    from worker.telegram.tether import Tether


aes_backend.install()
unpacking.install()
key_exchange.install()


@dataclass(frozen=True, slots=True)
class Server:
    """Which Telegram to speak to, from which local address, and through which proxy."""

    api_id: int
    api_hash: str
    host: str | None = None
    port: int = 443
    test_servers: bool = False
    bind_address: str | None = None
    proxy: str | None = None


class FleetClient(Client):
    """A client that never starts by itself and hands updates on instead of queueing them without bound."""

    def __init__(
        self,
        server: Server,
        storage: MemoryStorage,
        *,
        on_update: Callable[[], None],
        tether: Tether,
    ) -> None:
        super().__init__(
            "archive-fleet",
            api_id=server.api_id,
            api_hash=server.api_hash,
            test_mode=server.test_servers,
            storage_engine=storage,
            proxy=None if server.proxy is None else parse_proxy(server.proxy),
            app_version="Archive Fleet",
            device_model="worker",
            fetch_replies=False,
            fetch_topics=False,
            fetch_stories=False,
            fetch_stickers=False,
            connection_factory=connection_class(server, tether),
        )
        self._on_update = on_update

    async def greeting(self) -> bytes:
        """What stands before the first query of a session: the layer, and who is speaking."""
        introduced = raw.functions.help.GetConfig()
        whole = raw.functions.InvokeWithLayer(
            layer=layer,
            query=raw.functions.InitConnection(
                api_id=await self.storage.api_id(),
                app_version=self.app_version,
                device_model=self.device_model,
                system_version=self.system_version,
                system_lang_code=self.system_lang_code,
                lang_pack=self.lang_pack,
                lang_code=self.lang_code,
                query=introduced,
            ),
        ).write()
        return bytes(whole[: -len(introduced.write())])

    async def handle_updates(self, updates: Any) -> None:  # noqa: ARG002 - a wake-up, not a record
        """Something happened; the scan will find out what."""
        self._on_update()


def trust_public_key(path: Path) -> None:
    """Accept a server that proves itself with this RSA key; process-wide, as the library keeps them."""
    try:
        key = load_pem_public_key(path.read_bytes())
    except (OSError, ValueError) as error:
        raise UserError(f"{path} is not a PEM public key", remedy="check telegram.public_key") from error
    if not isinstance(key, RSAPublicKey):
        raise UserError(f"{path} is not an RSA key", remedy="check telegram.public_key")
    numbers = key.public_numbers()
    fingerprint = _fingerprint(numbers.n, numbers.e)
    rsa.server_public_keys[fingerprint] = rsa.PublicKey(numbers.n, numbers.e)


def _fingerprint(modulus: int, exponent: int) -> int:
    """The low 64 bits of the SHA-1 over modulus and exponent as TL byte strings."""
    encoded = b"".join(_tl_bytes(n.to_bytes((n.bit_length() + 7) // 8, "big")) for n in (modulus, exponent))
    return int.from_bytes(hashlib.sha1(encoded).digest()[-8:], "little", signed=True)  # noqa: S324 - the protocol's


def _tl_bytes(data: bytes) -> bytes:
    head = bytes([len(data)]) if len(data) < 254 else b"\xfe" + len(data).to_bytes(3, "little")
    return head + data + bytes(-(len(head) + len(data)) % 4)
