"""A sandbox in a process of its own, and stock clients pointed at it."""

from __future__ import annotations

import os
import signal
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cryptography.hazmat.primitives import serialization
from forked import Forked, start_sandbox
from pyrogram import Client, raw
from pyrogram.connection import Connection
from pyrogram.crypto import rsa

from worker.sandbox.admin_client import SandboxAdmin
from worker.sandbox.public_key import fingerprint

if TYPE_CHECKING:
    from collections.abc import AsyncIterator


@dataclass
class RunningSandbox:
    """One server process; ``facts`` is the line it printed."""

    process: Forked | None
    arguments: list[str]
    facts: dict[str, Any]

    @classmethod
    def start(cls, *arguments: str) -> RunningSandbox:
        process, facts = start_sandbox(*arguments)
        return cls(process, list(arguments), facts)

    @property
    def admin(self) -> SandboxAdmin:
        return SandboxAdmin.announced(self.facts)

    def kill(self) -> None:
        os.kill(self.process.pid, signal.SIGKILL)
        self.process.wait()

    def restart(self) -> None:
        """Kill the server with SIGKILL and start it again on the same state."""
        self.kill()
        again = self.start(*self.arguments)
        self.process, self.facts = again.process, again.facts

    def stop(self) -> dict[str, Any]:
        os.kill(self.process.pid, signal.SIGTERM)
        return self.process.wait()

    def trust(self) -> None:
        """Make this process's Kurigram accept the server's key."""
        pem = Path(self.facts["public_key"]).read_bytes()
        numbers = serialization.load_pem_public_key(pem).public_numbers()
        rsa.server_public_keys[fingerprint(numbers.n, numbers.e)] = rsa.PublicKey(numbers.n, numbers.e)

    def client(self, name: str, workdir: Path, **options: Any) -> Client:
        """A stock Kurigram client that finds this server where it expects Telegram."""
        self.trust()
        host, port = self.facts["host"], self.facts["port"]

        class HereConnection(Connection):
            def __init__(self, **arguments: Any) -> None:
                super().__init__(**{**arguments, "server_address": host, "port": port})

        defaults = {
            "fetch_replies": False,
            "fetch_topics": False,
            "fetch_stories": False,
            "fetch_stickers": False,
        }
        return Client(
            name,
            api_id=1,
            api_hash="0" * 32,
            workdir=workdir,
            connection_factory=HereConnection,
            **{**defaults, **options},
        )

    @asynccontextmanager
    async def logged_in(
        self, phone: str, workdir: Path, *, name: str | None = None, **options: Any
    ) -> AsyncIterator[Client]:
        """A started client of an account, signed up if need be. The session file is kept in ``workdir``."""
        client = self.client(name or phone.strip("+"), workdir, **options)
        if not await client.connect():
            await log_in(client, phone)
        client.me = await client.get_me()
        await client.initialize()
        try:
            yield client
        finally:
            await client.stop()


async def log_in(client: Client, phone: str, code: str = "12345") -> None:
    sent = await client.send_phone_number_code(phone)
    signed = await client.sign_in(phone, sent.phone_code_hash, code)
    if not signed:
        await client.sign_up(phone, sent.phone_code_hash, "Test", "Account")


def chat(channel_id: int) -> int:
    """The number that the stock client knows a channel by."""
    return int(f"-100{channel_id}")


async def made_channel(sandbox: RunningSandbox, *members: str, **options: Any) -> int:
    """A channel of these accounts (made if need be), the first of whom owns it."""
    for phone in members:
        await sandbox.admin.create_account(phone, "Test")
    made = await sandbox.admin.create_channel(
        "Archives", admins=list(members[:1]), members=list(members[1:]), **options
    )
    return int(made["channel_id"])


async def peer_of(client: Client, channel_id: int) -> Any:
    """The input peer of a channel the client has in its list."""
    async for _ in client.get_dialogs():
        pass
    return await client.resolve_peer(chat(channel_id))


async def send_text(client: Client, channel_id: int, text: str, random_id: int, **options: Any) -> Any:
    """Send once, without the library's own retries, to a channel the client knows."""
    peer = await client.storage.get_peer_by_id(chat(channel_id))
    query = raw.functions.messages.SendMessage(peer=peer, message=text, random_id=random_id)
    return await client.session.invoke(query, retries=1, **options)


async def texts_in(sandbox: RunningSandbox, channel_id: int) -> list[str]:
    """The texts ever posted in a channel, by the ledger."""
    return [m["text"] for m in await sandbox.admin.messages(channel_id) if m["kind"] == "text"]
