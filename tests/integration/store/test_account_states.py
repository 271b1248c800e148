from uuid import uuid4

import asyncpg
import pytest

from worker.domain.telegram import Me
from worker.errors import FenceLostError
from worker.store import account_secrets, accounts, pending_logins, workers
from worker.store.accounts import StoredSession
from worker.store.leases import Tenure
from worker.store.pending_logins import PendingLogin
from worker.store.sealing import Sealer

SEALER = Sealer(bytes(32))
OLD_KEY, NEW_KEY = bytes(256), bytes([1]) * 256


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


@pytest.fixture
async def tenures(database, database_url):
    """A worker's turn with an account that is over, and that of a login which has replaced its session since."""
    worker_id = uuid4()
    await workers.register(database, worker_id, host="h", pid=1, version="0", address=None)
    connection = await asyncpg.connect(database_url)
    account = await connection.fetchval(
        "INSERT INTO accounts (phone, worker_id, lease_epoch) VALUES ('+1', $1, 2) RETURNING id", worker_id
    )
    await connection.close()
    before, present = (Tenure(account, worker_id, epoch, 30.0) for epoch in (1, 2))
    await accounts.save_login(database, SEALER, present, StoredSession(4, NEW_KEY), Me(7, "Ada", None, False))
    return before, present


async def _state(database, tenure) -> str:
    return (await accounts.get_account(database, tenure.account_id)).state


async def test_a_worker_that_has_lost_an_account_does_not_call_a_fresh_login_unusable(database, tenures):
    before, present = tenures
    assert not await accounts.mark_unusable(database, before, "needs_login", "AUTH_KEY_UNREGISTERED")
    assert await _state(database, before) == "ready"
    assert await accounts.mark_unusable(database, present, "needs_login", "AUTH_KEY_UNREGISTERED")
    assert await _state(database, present) == "needs_login"


async def test_a_login_that_has_lost_its_account_says_nothing_of_how_it_stands(database, tenures):
    before, _ = tenures
    assert not await accounts.mark(database, before, "awaiting_code", None)
    assert await _state(database, before) == "ready"


async def test_a_worker_that_has_lost_an_account_does_not_touch_the_keys_of_a_fresh_login(database, tenures):
    before, present = tenures
    await account_secrets.keep_key(database, SEALER, present, 2, NEW_KEY)
    with pytest.raises(FenceLostError):
        await account_secrets.keep_key(database, SEALER, before, 4, OLD_KEY)
    with pytest.raises(FenceLostError):
        await account_secrets.forget_key(database, before, 2)
    session = await accounts.load_session(database, SEALER, present.account_id)
    assert session == StoredSession(4, NEW_KEY, {2: NEW_KEY})


async def test_a_worker_that_has_lost_an_account_does_not_say_whose_it_is(database, tenures):
    before, present = tenures
    await accounts.save_me(database, present, Me(7, "Ada L.", "ada", is_premium=True))
    with pytest.raises(FenceLostError):
        await accounts.save_me(database, before, Me(7, "Ada", None, is_premium=False))
    account = await accounts.get_account(database, present.account_id)
    assert (account.display_name, account.is_premium) == ("Ada L.", True)


async def test_a_removal_that_has_lost_its_account_deletes_no_fresh_login(database, tenures):
    before, present = tenures
    with pytest.raises(FenceLostError):
        await accounts.delete(database, before)
    assert await _state(database, present) == "ready"
    await accounts.delete(database, present)
    assert await accounts.all_accounts(database) == []


@pytest.fixture
async def pending(database, tenures):
    """A login that the account's present owner has begun."""
    begun = PendingLogin(4, NEW_KEY, "hash", awaits_password=False)
    await pending_logins.save(database, SEALER, tenures[1], begun)
    return begun


async def test_a_login_that_has_lost_its_account_touches_none_that_was_begun_since(
    database, tenures, pending
):
    before, present = tenures
    late = PendingLogin(2, OLD_KEY, "older", awaits_password=True)
    with pytest.raises(FenceLostError):
        await pending_logins.save(database, SEALER, before, late)
    with pytest.raises(FenceLostError):
        await pending_logins.drop(database, before)
    assert not await accounts.mark(database, before, "new", None)
    assert await pending_logins.load(database, SEALER, present.account_id) == pending


async def test_an_account_that_is_new_again_has_no_login_under_way(database, tenures, pending):
    _, present = tenures
    assert await accounts.mark(database, present, "new", None)
    assert await pending_logins.load(database, SEALER, present.account_id) is None
