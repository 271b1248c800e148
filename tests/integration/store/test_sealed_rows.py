"""What is sealed for one account opens for no other, even with the right key."""

import pytest
from sqlalchemy import text

from worker.errors import UserError
from worker.store.account_secrets import load_keys, load_secret, save_key, save_secret
from worker.store.accounts import add_account
from worker.store.sealing import Sealer

SEALER = Sealer(bytes(32))
KEY = bytes(range(256))
DOES_NOT_OPEN = "a stored session does not open with this secret key"


@pytest.fixture
async def ada(database):
    return (await add_account(database, "+10000000001")).id


@pytest.fixture
async def grace(database):
    return (await add_account(database, "+10000000002")).id


async def _change(database, statement: str, **values) -> None:
    async with database.transaction("test") as connection:
        assert (await connection.execute(text(statement), values)).rowcount == 1


async def _keep_key(database, account: int) -> None:
    async with database.transaction("test") as connection:
        await save_key(connection, SEALER, account, 4, KEY, is_main=False)


async def test_a_key_that_was_moved_to_another_account_does_not_open(database, ada, grace):
    await _keep_key(database, ada)
    assert await load_keys(database, SEALER, ada) == (None, {4: KEY})
    await _change(database, "UPDATE account_keys SET account_id = :grace", grace=grace)
    with pytest.raises(UserError, match=DOES_NOT_OPEN):
        await load_keys(database, SEALER, grace)


async def test_a_key_that_was_moved_to_another_data_centre_does_not_open(database, ada):
    await _keep_key(database, ada)
    await _change(database, "UPDATE account_keys SET dc_id = 5")
    with pytest.raises(UserError, match=DOES_NOT_OPEN):
        await load_keys(database, SEALER, ada)


async def test_a_secret_that_was_moved_to_another_account_does_not_open(database, ada, grace):
    await save_secret(database, SEALER, ada, "proxy", b"socks5://127.0.0.1:1080")
    assert await load_secret(database, SEALER, ada, "proxy") == b"socks5://127.0.0.1:1080"
    await _change(database, "UPDATE account_secrets SET account_id = :grace", grace=grace)
    with pytest.raises(UserError, match=DOES_NOT_OPEN):
        await load_secret(database, SEALER, grace, "proxy")
