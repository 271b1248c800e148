"""The proxy that an account reaches Telegram through. Its address may hold a password, so it is sealed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from worker.store import account_secrets

if TYPE_CHECKING:
    from worker.store.database import Database
    from worker.store.sealing import Sealer

_NAME = "proxy"


async def save(database: Database, sealer: Sealer, account_id: int, address: str) -> None:
    """Use this proxy from the next connection on."""
    await account_secrets.save_secret(database, sealer, account_id, _NAME, address.encode())


async def load(database: Database, sealer: Sealer, account_id: int) -> str | None:
    """The account's proxy, if it has one."""
    plain = await account_secrets.load_secret(database, sealer, account_id, _NAME)
    return None if plain is None else plain.decode()


async def drop(database: Database, account_id: int) -> None:
    """Connect directly from the next connection on."""
    await account_secrets.drop_secret(database, account_id, _NAME)
