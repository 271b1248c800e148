"""Logins that wait for a code or a password: what it takes to go on with them."""

from __future__ import annotations

import base64
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sqlalchemy import text

from worker.store import account_secrets

if TYPE_CHECKING:
    from sqlalchemy.ext.asyncio import AsyncConnection

    from worker.store.database import Database
    from worker.store.leases import Tenure
    from worker.store.sealing import Sealer

_NAME = "login"


@dataclass(frozen=True, slots=True)
class PendingLogin:
    """The key that the login was begun with, and what its code has to be presented with."""

    dc_id: int
    auth_key: bytes
    code_hash: str
    awaits_password: bool


async def save(database: Database, sealer: Sealer, tenure: Tenure, pending: PendingLogin) -> None:
    """Keep how far the login has come. One that has lost its account writes nothing over what came after."""
    document = {
        "dc_id": pending.dc_id,
        "auth_key": base64.b64encode(pending.auth_key).decode(),
        "code_hash": pending.code_hash,
        "awaits_password": pending.awaits_password,
    }
    plain = json.dumps(document).encode()
    await account_secrets.save_secret(database, sealer, tenure.account_id, _NAME, plain, owner=tenure)


async def load(database: Database, sealer: Sealer, account_id: int) -> PendingLogin | None:
    """The login that this account is in the middle of, if it is."""
    plain = await account_secrets.load_secret(database, sealer, account_id, _NAME)
    if plain is None:
        return None
    document = json.loads(plain)
    return PendingLogin(
        document["dc_id"],
        base64.b64decode(document["auth_key"]),
        document["code_hash"],
        awaits_password=document["awaits_password"],
    )


async def end(connection: AsyncConnection, account_id: int) -> None:
    """It has ended, in the transaction that keeps what came of it."""
    await connection.execute(
        text("DELETE FROM account_secrets WHERE account_id = :account AND name = :name"),
        {"account": account_id, "name": _NAME},
    )


async def drop(database: Database, tenure: Tenure) -> None:
    """It has lapsed."""
    await account_secrets.drop_secret(database, tenure.account_id, _NAME, owner=tenure)
