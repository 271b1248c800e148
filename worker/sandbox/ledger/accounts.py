"""Accounts and the codes they log in with."""

from __future__ import annotations

import secrets
import time
from typing import TYPE_CHECKING

from worker.sandbox.ledger.database import new_id
from worker.sandbox.ledger.rows import Account, maybe

if TYPE_CHECKING:
    from worker.sandbox.ledger.database import Database

FIRST_USER_ID = 5_000_000_001
CODE_LIFETIME = 300.0


def plain(phone: str) -> str:
    """Return the digits of a phone number, the way the server stores it."""
    return "".join(filter(str.isdigit, phone))


class Accounts:
    """The tables ``accounts`` and ``login_codes``."""

    def __init__(self, db: Database) -> None:
        self._db = db
        # What a code is refused with that was used before: servers differ.
        self.spent = "PHONE_CODE_EXPIRED"

    def create(self, phone: str, first_name: str, last_name: str = "", *, premium: bool = False) -> Account:
        with self._db.transaction():
            newest = self._db.value("SELECT max(user_id) FROM accounts") or FIRST_USER_ID - 1
            self._db.insert(
                "accounts",
                user_id=newest + 1,
                phone=plain(phone),
                first_name=first_name,
                last_name=last_name,
                access_hash=new_id(),
                premium=int(premium),
            )
        account = self.get(newest + 1)
        assert account is not None
        return account

    def get(self, user_id: int) -> Account | None:
        return maybe(Account, self._db.one("SELECT * FROM accounts WHERE user_id = ?", user_id))

    def by_phone(self, phone: str) -> Account | None:
        return maybe(Account, self._db.one("SELECT * FROM accounts WHERE phone = ?", plain(phone)))

    def by_username(self, username: str) -> Account | None:
        row = self._db.one("SELECT * FROM accounts WHERE lower(username) = lower(?)", username)
        return maybe(Account, row)

    def set_premium(self, user_id: int, premium: bool) -> None:
        self._db.run("UPDATE accounts SET premium = ? WHERE user_id = ?", int(premium), user_id)

    def set_banned(self, user_id: int, banned: bool) -> None:
        self._db.run("UPDATE accounts SET banned = ? WHERE user_id = ?", int(banned), user_id)

    def set_username(self, user_id: int, username: str | None) -> None:
        self._db.run("UPDATE accounts SET username = ? WHERE user_id = ?", username or None, user_id)

    def set_names(self, user_id: int, first_name: str | None, last_name: str | None) -> None:
        self._db.run(
            "UPDATE accounts SET first_name = coalesce(?, first_name), last_name = coalesce(?, last_name)"
            " WHERE user_id = ?",
            first_name,
            last_name,
            user_id,
        )

    def set_password(self, user_id: int, salt1: bytes, salt2: bytes, verifier: bytes, hint: str) -> None:
        self._db.run(
            "UPDATE accounts SET salt1 = ?, salt2 = ?, verifier = ?, hint = ? WHERE user_id = ?",
            salt1,
            salt2,
            verifier,
            hint,
            user_id,
        )

    def clear_password(self, user_id: int) -> None:
        self._db.run(
            "UPDATE accounts SET salt1 = NULL, salt2 = NULL, verifier = NULL, hint = '' WHERE user_id = ?",
            user_id,
        )

    def send_code(self, phone: str, code: str) -> str:
        """Remember the code this number has to show, and return the hash that names the attempt."""
        code_hash = secrets.token_hex(9)
        self._db.run(
            "INSERT OR REPLACE INTO login_codes (phone, code_hash, code, sent_at) VALUES (?, ?, ?, ?)",
            plain(phone),
            code_hash,
            code,
            time.time(),
        )
        return code_hash

    def check_code(self, phone: str, code_hash: str, code: str | None) -> str:
        """Return what is wrong with a code, empty if it is right. ``code`` None checks the hash alone."""
        row = self._db.one("SELECT * FROM login_codes WHERE phone = ?", plain(phone))
        if row is None:
            return self.spent
        if row["code_hash"] != code_hash:
            return "PHONE_CODE_EXPIRED"
        if time.time() - row["sent_at"] > CODE_LIFETIME:
            return "PHONE_CODE_EXPIRED"
        if code is not None and row["code"] != code:
            return "PHONE_CODE_INVALID"
        return ""

    def prove_code(self, phone: str) -> None:
        """The number has shown its code; what is missing is an account."""
        self._db.run("UPDATE login_codes SET proven = 1 WHERE phone = ?", plain(phone))

    def is_proven(self, phone: str) -> bool:
        return bool(self._db.value("SELECT proven FROM login_codes WHERE phone = ?", plain(phone)))

    def spend_code(self, phone: str) -> None:
        self._db.run("DELETE FROM login_codes WHERE phone = ?", plain(phone))
