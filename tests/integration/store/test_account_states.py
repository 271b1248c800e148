import asyncpg
import pytest

from worker.store import accounts


@pytest.mark.parametrize(
    ("state", "has_session", "enabled"),
    [
        ("disabled", True, "ready"),
        ("disabled", False, "new"),
        ("awaiting_code", True, "ready"),
        ("awaiting_password", True, "ready"),
        ("awaiting_code", False, "awaiting_code"),
        ("needs_login", True, "needs_login"),
    ],
)
async def test_an_enabled_account_works_with_the_session_it_has(
    database, database_url, state, has_session, enabled
):
    """Also if another login was begun and given up: until that one succeeds nothing replaces the session."""
    connection = await asyncpg.connect(database_url)
    account = await connection.fetchval(
        "INSERT INTO accounts (phone, state) VALUES ('+1', $1) RETURNING id", state
    )
    if has_session:
        await connection.execute(
            "INSERT INTO account_keys (account_id, dc_id, is_main, key_id, sealed_key) VALUES ($1, 2, true, 'k', '')",
            account,
        )
    await connection.close()
    await accounts.enable(database, account)
    assert (await accounts.get_account(database, account)).state == enabled
