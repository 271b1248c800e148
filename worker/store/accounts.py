"""Accounts: their state and their sessions."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from sqlalchemy import text
from sqlalchemy.exc import IntegrityError

from worker.domain.phone import international, looks_like_phone, masked_phone
from worker.errors import UserError
from worker.store import pending_logins
from worker.store.account_secrets import load_keys, save_key
from worker.store.leases import require_owner

if TYPE_CHECKING:
    from sqlalchemy.ext.asyncio import AsyncConnection

    from worker.domain.telegram import Me
    from worker.store.database import Database
    from worker.store.leases import Tenure
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
    """A logged-in session: the data centre and the key agreed with it, and keys of other data centres."""

    dc_id: int
    auth_key: bytes
    other_keys: dict[int, bytes] = field(default_factory=dict)


_COLUMNS = "id, phone, display_name, is_premium, state, telegram_user_id"


async def add_account(database: Database, phone: str) -> Account:
    """The account with this phone number, made if it is new."""
    async with database.transaction("accounts.add") as connection:
        # Asked for before it is made: an insertion that conflicts uses up a number that people would miss.
        await connection.execute(
            text("""
                INSERT INTO accounts (phone) SELECT :phone
                WHERE NOT EXISTS (SELECT FROM accounts WHERE phone = :phone) ON CONFLICT (phone) DO NOTHING
            """),
            {"phone": phone},
        )
        query = text(f"SELECT {_COLUMNS} FROM accounts WHERE phone = :phone")
        return Account(*(await connection.execute(query, {"phone": phone})).one())


async def all_accounts(database: Database) -> list[Account]:
    """Every account, in the order in which they were added."""
    async with database.reading() as connection:
        query = text(f"SELECT {_COLUMNS} FROM accounts ORDER BY id")
        return [Account(*row) for row in await connection.execute(query)]


async def user_ids(database: Database) -> frozenset[int]:
    """Who our accounts are at Telegram."""
    async with database.reading() as connection:
        query = text("SELECT telegram_user_id FROM accounts WHERE telegram_user_id IS NOT NULL")
        return frozenset((await connection.execute(query)).scalars())


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
        # A phone number may be written with blanks, as for `accounts add`.
        rows = (await connection.execute(query, {"named": international(named) or named})).all()
    shown = masked_phone(named) if looks_like_phone(named) else named
    if not rows:
        remedy = "give its phone number, @username, name or number as worker status shows it"
        raise UserError(f"there is no account {shown}", remedy=remedy)
    if len(rows) > 1:
        raise UserError(f"several accounts are called {shown}", remedy="give the phone number")
    return Account(*rows[0])


async def save_login(
    database: Database, sealer: Sealer, tenure: Tenure, session: StoredSession, me: Me
) -> None:
    """Keep a finished login: the sealed session, who it is, and that the account can work.

    From here on any worker connects with this session: its own connections are closed by now. Whoever has
    lost the account writes nothing.
    """
    account_id = tenure.account_id
    try:
        async with database.transaction("accounts.login") as connection:
            await require_owner(connection, tenure)
            # The keys of other data centres were authorised by the session before.
            await connection.execute(
                text("DELETE FROM account_keys WHERE account_id = :account"), {"account": account_id}
            )
            await save_key(connection, sealer, account_id, session.dc_id, session.auth_key, is_main=True)
            await _write_me(connection, account_id, me)
            await pending_logins.end(connection, account_id)
            await connection.execute(
                text("UPDATE accounts SET state = 'ready', state_reason = NULL WHERE id = :account"),
                {"account": account_id},
            )
    except IntegrityError as error:
        raise UserError(
            "another account of the fleet is logged in as the same person",
            remedy="see: worker accounts list; remove one of the two",
        ) from error


async def save_me(database: Database, tenure: Tenure, me: Me) -> None:
    """Name, user id and Premium as Telegram says they are now.

    Whoever has lost the account writes nothing: its next owner has heard later how it stands.
    """
    async with database.transaction("accounts.me") as connection:
        await require_owner(connection, tenure)
        await _write_me(connection, tenure.account_id, me)


async def _write_me(connection: AsyncConnection, account_id: int, me: Me) -> None:
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


async def find_session(database: Database, sealer: Sealer, account_id: int) -> StoredSession | None:
    """The session this account is logged in with, if it is."""
    main, others = await load_keys(database, sealer, account_id)
    return None if main is None else StoredSession(*main, others)


async def load_session(database: Database, sealer: Sealer, account_id: int) -> StoredSession:
    """The session this account is logged in with."""
    session = await find_session(database, sealer, account_id)
    if session is None:
        remedy = f"run: worker accounts login {account_id}"
        raise UserError(f"account {account_id} is not logged in", remedy=remedy)
    return session


async def mark(database: Database, tenure: Tenure, state: str, reason: str | None) -> bool:
    """Say how an account stands after this turn with it; False if it has had another owner since.

    One that is new again has no login under way.
    """
    async with database.transaction("accounts.state") as connection:
        result = await connection.execute(
            text("""
                UPDATE accounts SET state = :state, state_reason = :reason, updated_at = fleet_now()
                WHERE id = :account AND lease_epoch = :epoch
            """),
            {"account": tenure.account_id, "epoch": tenure.epoch, "state": state, "reason": reason},
        )
        if result.rowcount and state == "new":
            await pending_logins.end(connection, tenure.account_id)
    return bool(result.rowcount)


async def disable(database: Database, account_id: int) -> None:
    """Let it rest; whoever runs it lets go of it."""
    async with database.transaction("accounts.disable") as connection:
        await connection.execute(
            text("""
                UPDATE accounts SET state = 'disabled', state_reason = NULL, updated_at = fleet_now()
                WHERE id = :account
            """),
            {"account": account_id},
        )


async def enable(database: Database, account_id: int) -> None:
    """Let a disabled or frozen account work again; one that has no session waits for its login.

    One that has a session, and for which another login was begun, goes on with the session it has.
    """
    async with database.transaction("accounts.enable") as connection:
        await connection.execute(
            text("""
                UPDATE accounts SET updated_at = fleet_now(), state_reason = NULL, state = CASE WHEN EXISTS
                    (SELECT FROM account_keys k WHERE k.account_id = accounts.id AND k.is_main)
                    THEN 'ready' WHEN state IN ('disabled', 'frozen') THEN 'new' ELSE state END
                WHERE id = :account AND state IN ('disabled', 'frozen', 'awaiting_code', 'awaiting_password')
            """),
            {"account": account_id},
        )


async def get_account(database: Database, account_id: int) -> Account:
    """The account of this number, which exists."""
    async with database.reading() as connection:
        query = text(f"SELECT {_COLUMNS} FROM accounts WHERE id = :account")
        return Account(*(await connection.execute(query, {"account": account_id})).one())


async def delete(database: Database, tenure: Tenure) -> None:
    """Forget an account; an upload that it has begun keeps it, what it has published does not.

    Whoever has lost the account deletes nothing: it may have been logged in anew.
    """
    account_id = tenure.account_id
    try:
        async with database.transaction("accounts.delete") as connection:
            await require_owner(connection, tenure)
            await connection.execute(
                text("DELETE FROM accounts WHERE id = :account"), {"account": account_id}
            )
    except IntegrityError as error:
        raise UserError(
            f"account {account_id} has begun something that is not finished",
            remedy="run: worker recover; or end it: worker recover --give-up SET",
        ) from error


async def mark_unusable(database: Database, tenure: Tenure, state: str, reason: str) -> bool:
    """Telegram said that the account works no more; a person has to act. Says whether that is news.

    Whoever has lost the account heard it of a session that may have been replaced: nothing is written.
    """
    async with database.transaction("accounts.unusable") as connection:
        result = await connection.execute(
            text("""
                UPDATE accounts SET state = :state, state_reason = :reason, updated_at = fleet_now()
                WHERE id = :account AND state = 'ready' AND lease_epoch = :epoch
            """),
            {"account": tenure.account_id, "epoch": tenure.epoch, "state": state, "reason": reason},
        )
    return bool(result.rowcount)
