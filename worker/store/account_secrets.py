"""What accounts keep encrypted: the keys of their sessions, logins that are under way, proxies.

Every row says which key it was sealed with. A key is given up only when no row is left under it: who seals
holds a lock against that, and looks up the key to seal with inside it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlalchemy import text

from worker.store.leases import require_owner

if TYPE_CHECKING:
    from sqlalchemy.ext.asyncio import AsyncConnection

    from worker.store.database import Database
    from worker.store.leases import Tenure
    from worker.store.sealing import Sealer

# Any number of sealers at once, or one who changes the key.
_SEALING = 1_094_927_703
_SHARED = text("SELECT pg_advisory_xact_lock_shared(:lock)")
_ALONE = text("SELECT pg_advisory_xact_lock(:lock)")


async def save_key(
    connection: AsyncConnection, sealer: Sealer, account_id: int, dc_id: int, key: bytes, *, is_main: bool
) -> None:
    """Keep the key that an account has agreed on with a data centre."""
    await _may_seal(connection, sealer)
    await connection.execute(
        text("""
            INSERT INTO account_keys (account_id, dc_id, is_main, key_id, sealed_key)
            VALUES (:account, :dc, :main, :key_id, :sealed)
            ON CONFLICT (account_id, dc_id) DO UPDATE SET is_main = excluded.is_main,
                key_id = excluded.key_id, sealed_key = excluded.sealed_key, updated_at = fleet_now()
        """),
        {
            "account": account_id,
            "dc": dc_id,
            "main": is_main,
            "key_id": sealer.key_id,
            "sealed": sealer.seal(key, purpose=_key_purpose(account_id, dc_id)),
        },
    )


async def keep_key(database: Database, sealer: Sealer, tenure: Tenure, dc_id: int, key: bytes) -> None:
    """Keep a key of another data centre than the account's own.

    Whoever has lost the account writes nothing: a login may have replaced its session, and be at home there.
    """
    async with database.transaction("accounts.key") as connection:
        await require_owner(connection, tenure)
        await save_key(connection, sealer, tenure.account_id, dc_id, key, is_main=False)


async def forget_key(database: Database, tenure: Tenure, dc_id: int) -> None:
    """A data centre does not know this key any more."""
    async with database.transaction("accounts.key_forgotten") as connection:
        await require_owner(connection, tenure)
        await connection.execute(
            text("DELETE FROM account_keys WHERE account_id = :account AND dc_id = :dc AND NOT is_main"),
            {"account": tenure.account_id, "dc": dc_id},
        )


async def load_keys(
    database: Database, sealer: Sealer, account_id: int
) -> tuple[tuple[int, bytes] | None, dict[int, bytes]]:
    """The account's own data centre with its key, if it is logged in, and the keys of the others."""
    async with database.reading() as connection:
        query = text("SELECT dc_id, is_main, sealed_key FROM account_keys WHERE account_id = :account")
        rows = (await connection.execute(query, {"account": account_id})).all()
    main, others = None, {}
    for row in rows:
        key = sealer.open(row.sealed_key, purpose=_key_purpose(account_id, row.dc_id))
        if row.is_main:
            main = (row.dc_id, key)
        else:
            others[row.dc_id] = key
    return main, others


async def save_secret(
    database: Database,
    sealer: Sealer,
    account_id: int,
    name: str,
    plain: bytes,
    owner: Tenure | None = None,
) -> None:
    """Keep something of an account's under a name; with an ``owner``, only if that still owns the account."""
    async with database.transaction("accounts.secret") as connection:
        if owner is not None:
            await require_owner(connection, owner)
        await _may_seal(connection, sealer)
        await connection.execute(
            text("""
                INSERT INTO account_secrets (account_id, name, key_id, sealed)
                VALUES (:account, :name, :key_id, :sealed)
                ON CONFLICT (account_id, name) DO UPDATE SET key_id = excluded.key_id,
                    sealed = excluded.sealed, updated_at = fleet_now()
            """),
            {
                "account": account_id,
                "name": name,
                "key_id": sealer.key_id,
                "sealed": sealer.seal(plain, purpose=_purpose(account_id, name)),
            },
        )


async def load_secret(database: Database, sealer: Sealer, account_id: int, name: str) -> bytes | None:
    """What is kept under this name, if anything is."""
    async with database.reading() as connection:
        query = text("SELECT sealed FROM account_secrets WHERE account_id = :account AND name = :name")
        sealed = (await connection.execute(query, {"account": account_id, "name": name})).scalar_one_or_none()
    return None if sealed is None else sealer.open(sealed, purpose=_purpose(account_id, name))


async def drop_secret(database: Database, account_id: int, name: str, owner: Tenure | None = None) -> None:
    """Keep it no longer; with an ``owner``, only if that still owns the account."""
    async with database.transaction("accounts.secret_dropped") as connection:
        if owner is not None:
            await require_owner(connection, owner)
        await connection.execute(
            text("DELETE FROM account_secrets WHERE account_id = :account AND name = :name"),
            {"account": account_id, "name": name},
        )


async def reseal(database: Database, sealer: Sealer) -> int:
    """Seal under the first key whatever is sealed under another; how many rows that were.

    When it returns, nobody has sealed, or will seal, under a key that is not among the sealer's first.
    """
    async with database.transaction("accounts.reseal") as connection:
        await connection.execute(_ALONE, {"lock": _SEALING})
        return await _reseal_keys(connection, sealer) + await _reseal_secrets(connection, sealer)


async def _reseal_keys(connection: AsyncConnection, sealer: Sealer) -> int:
    query = text("SELECT account_id, dc_id, sealed_key FROM account_keys WHERE key_id <> :key_id FOR UPDATE")
    rows = (await connection.execute(query, {"key_id": sealer.key_id})).all()
    for row in rows:
        purpose = _key_purpose(row.account_id, row.dc_id)
        await connection.execute(
            text("""
                UPDATE account_keys SET key_id = :key_id, sealed_key = :sealed
                WHERE account_id = :account AND dc_id = :dc
            """),
            {
                "key_id": sealer.key_id,
                "sealed": sealer.seal(sealer.open(row.sealed_key, purpose=purpose), purpose=purpose),
                "account": row.account_id,
                "dc": row.dc_id,
            },
        )
    return len(rows)


async def _reseal_secrets(connection: AsyncConnection, sealer: Sealer) -> int:
    query = text("SELECT account_id, name, sealed FROM account_secrets WHERE key_id <> :key_id FOR UPDATE")
    rows = (await connection.execute(query, {"key_id": sealer.key_id})).all()
    for row in rows:
        purpose = _purpose(row.account_id, row.name)
        await connection.execute(
            text("""
                UPDATE account_secrets SET key_id = :key_id, sealed = :sealed
                WHERE account_id = :account AND name = :name
            """),
            {
                "key_id": sealer.key_id,
                "sealed": sealer.seal(sealer.open(row.sealed, purpose=purpose), purpose=purpose),
                "account": row.account_id,
                "name": row.name,
            },
        )
    return len(rows)


async def sealed_under(database: Database) -> dict[str, int]:
    """How many rows are sealed under each key."""
    async with database.reading() as connection:
        query = text("""
            SELECT key_id, count(*) FROM (SELECT key_id FROM account_keys
                UNION ALL SELECT key_id FROM account_secrets) sealed GROUP BY key_id
        """)
        return {row[0]: row[1] for row in await connection.execute(query)}


async def _may_seal(connection: AsyncConnection, sealer: Sealer) -> None:
    await connection.execute(_SHARED, {"lock": _SEALING})
    sealer.refresh()


def _key_purpose(account_id: int, dc_id: int) -> str:
    return f"account {account_id} dc {dc_id}"


def _purpose(account_id: int, name: str) -> str:
    return f"account {account_id} {name}"
