"""Server salts: one per key and hour, derived from the key, so that nothing needs to be stored."""

from __future__ import annotations

import hashlib
import time
from typing import TYPE_CHECKING

from pyrogram.raw.core import FutureSalt, FutureSalts

if TYPE_CHECKING:
    from worker.sandbox.ledger.rows import Key

HOUR = 3600
# The salt that fell out of the key exchange serves until the client has heard of another.
FIRST_SALT_LIFETIME = 1800.0


def _salt(key: Key, hour: int) -> int:
    digest = hashlib.sha256(key.auth_key + hour.to_bytes(8, "little")).digest()
    return int.from_bytes(digest[:8], "little", signed=True)


def current(key: Key) -> int:
    return _salt(key, int(time.time()) // HOUR)


def is_valid(key: Key, salt: int) -> bool:
    """The present hour's salt, the one before, or a fresh key's first."""
    hour = int(time.time()) // HOUR
    if salt in (_salt(key, hour), _salt(key, hour - 1)):
        return True
    return salt == key.first_salt and time.time() - key.created_at < FIRST_SALT_LIFETIME


def future(key: Key, req_msg_id: int, wanted: int) -> FutureSalts:
    now = int(time.time())
    hours = range(now // HOUR, now // HOUR + min(max(wanted, 1), 64))
    salts = [FutureSalt(hour * HOUR, (hour + 2) * HOUR, _salt(key, hour)) for hour in hours]
    return FutureSalts(req_msg_id, now, salts)
