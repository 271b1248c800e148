"""No table holds a key that a session could be taken over with, neither after a login nor in the middle of one."""

import base64

from accounts_place import ADA, CODE, GRACE
from database_rows import read_rows

from worker.store import pending_logins
from worker.store.accounts import load_session
from worker.store.sealing import Sealer

# What the key file of the place says.
SEALER = Sealer(bytes(32))


def _spellings(key: bytes) -> list[bytes]:
    """The beginning of a key, the ways that a column could hold it."""
    assert len(key) == 256
    start = key[:48]
    return [start, start.hex().encode(), start.hex().upper().encode(), base64.b64encode(start)]


async def _holding(database_url, key: bytes) -> list[str]:
    """The tables that hold this key for all to read."""
    tables = (await read_rows(database_url)).tables
    assert SEALER.key_id.encode() in tables["account_keys"] + tables["account_secrets"], "nothing is sealed"
    return [name for name, content in tables.items() if any(each in content for each in _spellings(key))]


async def test_after_a_login_no_table_holds_its_key(place, tmp_path, database, database_url):
    (tmp_path / "code").write_text(CODE)
    assert (await place.run("add", ADA, "--code-file", str(tmp_path / "code"))).code == 0
    session = await load_session(database, SEALER, 1)
    assert await _holding(database_url, session.auth_key) == []


async def test_in_the_middle_of_a_login_no_table_holds_its_key(place, tmp_path, database, database_url):
    (tmp_path / "code").write_text(CODE)
    await place.run("add", GRACE, "--code-file", str(tmp_path / "code"))
    assert await place.states() == {"02": "awaiting_password"}
    pending = await pending_logins.load(database, SEALER, 1)
    assert await _holding(database_url, pending.auth_key) == []
