"""Accounts: their state and their sessions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from sqlalchemy import text

from worker.domain.phone import looks_like_phone, masked_phone
from worker.errors import UserError

if TYPE_CHECKING:
    from worker.domain.telegram import Me
    from worker.store.database import Database
    from worker.store.sealing import Sealer


@dataclass(frozen=True, slots=True)
class Account:
    """An account as the fleet knows it."""

    id: int
    phone: str
    display_name: str
    is_premium: bool
    state: str
    telegram_user_id: int | None


@dataclass(frozen=True, slots=True)
class StoredSession:
    """A logged-in session: the data centre and the key agreed with it."""

    dc_id: int
    auth_key: bytes


_COLUMNS = "id, phone, display_name, is_premium, state, telegram_user_id"


async def add_account(database: Database, phone: str) -> Account:
    """The account with this phone number, made if it is new."""
    async with database.transaction("accounts.add") as connection:
        await connection.execute(
            text("INSERT INTO accounts (phone) VALUES (:phone) ON CONFLICT (phone) DO NOTHING"),
            {"phone": phone},
        )
        query = text(f"SELECT {_COLUMNS} FROM accounts WHERE phone = :phone")
        return Account(*(await connection.execute(query, {"phone": phone})).one())


async def all_accounts(database: Database) -> list[Account]:
    """Every account, in the order in which they were added."""
    async with database.reading() as connection:
        query = text(f"SELECT {_COLUMNS} FROM accounts ORDER BY id")
        return [Account(*row) for row in await connection.execute(query)]


async def ready_accounts(database: Database) -> list[Account]:
    """Accounts that could work now."""
    async with database.reading() as connection:
        query = text(f"SELECT {_COLUMNS} FROM accounts WHERE state = 'ready' ORDER BY id")
        return [Account(*row) for row in await connection.execute(query)]


async def find_account(database: Database, named: str) -> Account:
    """The account that a person means by its phone number, @username, name, or our number for it."""
    async with database.reading() as connection:
        query = text(f"""
            SELECT {_COLUMNS} FROM accounts
            WHERE CAST(id AS text) = :named OR ltrim(phone, '+') = ltrim(:named, '+')
               OR lower(username) = lower(ltrim(:named, '@')) OR lower(display_name) = lower(:named)
            ORDER BY id LIMIT 2
        """)
        rows = (await connection.execute(query, {"named": named})).all()
    shown = masked_phone(named) if looks_like_phone(named) else named
    if not rows:
        remedy = "give its phone number, @username, name or number as worker status shows it"
        raise UserError(f"there is no account {shown}", remedy=remedy)
    if len(rows) > 1:
        raise UserError(f"several accounts are called {shown}", remedy="give the phone number")
    return Account(*rows[0])


async def save_login(
    database: Database, sealer: Sealer, account_id: int, session: StoredSession, me: Me
) -> None:
    """Keep a finished login: the sealed session, who it is, and that the account can work."""
    async with database.transaction("accounts.login") as connection:
        await connection.execute(
            text("UPDATE account_keys SET is_main = false WHERE account_id = :account"),
            {"account": account_id},
        )
        await connection.execute(
            text("""
                INSERT INTO account_keys (account_id, dc_id, is_main, key_id, sealed_key)
                VALUES (:account, :dc, true, :key_id, :sealed)
                ON CONFLICT (account_id, dc_id) DO UPDATE SET is_main = true, key_id = excluded.key_id,
                    sealed_key = excluded.sealed_key, updated_at = fleet_now()
            """),
            {
                "account": account_id,
                "dc": session.dc_id,
                "key_id": sealer.key_id,
                "sealed": sealer.seal(session.auth_key, purpose=_purpose(account_id, session.dc_id)),
            },
        )
        await connection.execute(
            text("UPDATE accounts SET state = 'ready', state_reason = NULL WHERE id = :account"),
            {"account": account_id},
        )
    await save_me(database, account_id, me)


async def save_me(database: Database, account_id: int, me: Me) -> None:
    """Name, user id and Premium as Telegram says they are now."""
    async with database.transaction("accounts.me") as connection:
        await connection.execute(
            text("""
                UPDATE accounts SET telegram_user_id = :user_id, display_name = :name, username = :username,
                    is_premium = :premium, updated_at = fleet_now() WHERE id = :account
            """),
            {
                "account": account_id,
                "user_id": me.user_id,
                "name": me.display_name,
                "username": me.username,
                "premium": me.is_premium,
            },
        )


async def load_session(database: Database, sealer: Sealer, account_id: int) -> StoredSession:
    """The session this account is logged in with."""
    async with database.reading() as connection:
        query = text("SELECT dc_id, sealed_key FROM account_keys WHERE account_id = :account AND is_main")
        row = (await connection.execute(query, {"account": account_id})).one_or_none()
    if row is None:
        raise UserError(f"account {account_id} is not logged in", remedy="run: worker accounts add")
    return StoredSession(row.dc_id, sealer.open(row.sealed_key, purpose=_purpose(account_id, row.dc_id)))


async def mark_needs_login(database: Database, account_id: int, reason: str) -> bool:
    """Telegram said that the session is over; a person has to log in again. Says whether that is news."""
    async with database.transaction("accounts.needs_login") as connection:
        result = await connection.execute(
            text("""
                UPDATE accounts SET state = 'needs_login', state_reason = :reason, updated_at = fleet_now()
                WHERE id = :account AND state = 'ready'
            """),
            {"account": account_id, "reason": reason},
        )
    return bool(result.rowcount)


def _purpose(account_id: int, dc_id: int) -> str:
    return f"account {account_id} dc {dc_id}"
