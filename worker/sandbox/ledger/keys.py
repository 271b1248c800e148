"""Auth keys: which exist, whom they speak for, and which are dead for good."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from worker.sandbox.ledger.rows import Key, maybe

if TYPE_CHECKING:
    from worker.sandbox.ledger.database import Database
    from worker.sandbox.wire.handshake import NewKey


class Keys:
    """The table ``auth_keys`` and the tokens that carry an authorisation from one key to another."""

    def __init__(self, db: Database) -> None:
        self._db = db

    def add(self, key: NewKey, dc_id: int) -> None:
        self._db.insert(
            "auth_keys",
            key_id=key.key_id,
            auth_key=key.auth_key,
            first_salt=key.salt,
            created_at=time.time(),
            dc_id=dc_id,
        )

    def get(self, key_id: int) -> Key | None:
        return maybe(Key, self._db.one("SELECT * FROM auth_keys WHERE key_id = ?", key_id))

    def of(self, user_id: int) -> list[int]:
        """Return the living keys of an account."""
        rows = self._db.all("SELECT key_id FROM auth_keys WHERE user_id = ? AND dead = ''", user_id)
        return [row["key_id"] for row in rows]

    def authorise(self, key_id: int, user_id: int, dc_id: int | None = None) -> None:
        self._db.run(
            "UPDATE auth_keys SET user_id = ?, pending_user_id = NULL, dc_id = coalesce(?, dc_id)"
            " WHERE key_id = ?",
            user_id,
            dc_id,
            key_id,
        )

    def await_password(self, key_id: int, user_id: int) -> None:
        """The code was right; the password is still missing."""
        self._db.run("UPDATE auth_keys SET pending_user_id = ? WHERE key_id = ?", user_id, key_id)

    def log_out(self, key_id: int) -> None:
        self._db.run("UPDATE auth_keys SET user_id = NULL, pending_user_id = NULL WHERE key_id = ?", key_id)

    def set_layer(self, key_id: int, layer: int) -> None:
        self._db.run("UPDATE auth_keys SET layer = ? WHERE key_id = ?", layer, key_id)

    def kill(self, key_id: int, reason: str) -> None:
        """The key answers ``reason`` to every call from here on."""
        self._db.run("UPDATE auth_keys SET dead = ? WHERE key_id = ?", reason, key_id)

    def kill_all_of(self, user_id: int, reason: str) -> None:
        self._db.run("UPDATE auth_keys SET dead = ? WHERE user_id = ?", reason, user_id)

    def export(self, user_id: int, dc_id: int, token: bytes) -> None:
        self._db.insert(
            "exported_authorizations", token=token, user_id=user_id, dc_id=dc_id, made_at=time.time()
        )

    def redeem(self, user_id: int, token: bytes) -> int | None:
        """Return the DC an exported authorisation was made for and forget it; None if there is none."""
        row = self._db.one(
            "DELETE FROM exported_authorizations WHERE token = ? AND user_id = ? RETURNING dc_id",
            token,
            user_id,
        )
        return None if row is None else int(row["dc_id"])
