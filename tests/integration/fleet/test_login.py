"""Logging an account in: it owns the account, and believes nothing that Telegram says twice."""

import asyncio
import contextlib
import uuid
from dataclasses import dataclass, replace

import asyncpg
import pytest
from hang_guard import HANG_SECONDS, until
from loopback_telegram import Telegram
from lost_reply import LosesOneReply

from worker.clock import SystemClock
from worker.config.settings import Settings
from worker.domain.telegram import Me
from worker.errors import FenceLostError, FleetError, RetryableError
from worker.fleet.lease import lease_account
from worker.fleet.setup import Login, log_in, open_login
from worker.sandbox.admin_client import SandboxAdmin
from worker.store import accounts, workers
from worker.store.accounts import load_session, save_login
from worker.store.leases import Tenure
from worker.store.sealing import Sealer
from worker.telegram.authorising import log_out
from worker.telegram.gateway import Gateway

ADA, GRACE = "+10000000001", "+10000000002"
CODE, PASSWORD = "12345", "correct horse"
SPENT = pytest.mark.parametrize("spent", ["PHONE_CODE_EXPIRED", "PHONE_CODE_INVALID"])
_KILL_LOCK_HOLDERS = (
    "SELECT pg_terminate_backend(pid) FROM pg_locks WHERE locktype = 'advisory' AND pid <> pg_backend_pid()"
    " AND database = (SELECT oid FROM pg_database WHERE datname = current_database())"
)


@dataclass
class Place:
    """A Telegram that knows two numbers, the second with a password, and what logs in there."""

    admin: SandboxAdmin
    login: Login
    raw: asyncpg.Connection
    codes: int = 0

    async def log_in(self, phone=ADA, *, ask_code=None, code=CODE, password=PASSWORD, **options):
        async def typed() -> str:
            self.codes += 1
            return code

        async def secret() -> str:
            return password

        asked = log_in(self.login, phone, ask_code=ask_code or typed, ask_password=secret, **options)
        async with asyncio.timeout(HANG_SECONDS):
            return await asked

    async def state(self) -> str:
        return await self.raw.fetchval("SELECT state FROM accounts WHERE id = 1")

    async def times(self, method: str) -> int:
        return len(await self.admin.calls(method))


@pytest.fixture
async def place(tmp_path, database, database_url):
    with contextlib.closing(Telegram(tmp_path / "telegram")) as telegram:
        facts = telegram.facts
        admin = SandboxAdmin.announced(facts)
        await admin.create_account(ADA, "Ada")
        await admin.create_account(GRACE, "Grace", password=PASSWORD)
        server = {"host": facts["host"], "port": facts["port"], "public_key": facts["public_key"]}
        settings = Settings.model_validate(
            {
                "telegram": {"api_id": 1, "api_hash": "0" * 32, **server},
                "lease": {"lease_secs": 2 * HANG_SECONDS, "heartbeat_secs": 0.1},
                "rate_limits": {"profile": "relaxed"},
            }
        )
        raw = await asyncpg.connect(database_url)
        async with open_login(settings, database, sealer=Sealer(bytes(32))) as login:
            yield Place(admin, login, raw)
        await raw.close()


@SPENT
async def test_a_code_whose_answer_was_lost_is_not_given_twice(place, spent):
    await place.admin.refuse_spent_codes(spent)
    await place.admin.add_rule("auth.signIn", "drop_reply")
    assert (await place.log_in()).state == "ready"
    assert (place.codes, await place.times("auth.sendCode"), await place.times("auth.signIn")) == (1, 1, 1)


@SPENT
async def test_a_code_that_was_refused_because_an_earlier_copy_had_arrived_has_logged_the_session_in(
    place, spent
):
    """The session is asked who it is while the first copy of the call is still on its way."""
    await place.admin.refuse_spent_codes(spent)
    await place.admin.add_rule("auth.signIn", "drop_reply")
    await place.admin.add_rule("users.getUsers", "error", code=401, text="AUTH_KEY_UNREGISTERED")
    assert (await place.log_in()).state == "ready"
    assert (place.codes, await place.times("auth.signIn")) == (1, 2)


async def test_a_finished_login_whose_commit_got_no_answer_says_how_to_go_on(place, database_url):
    forgetful = LosesOneReply(database_url)
    forgetful.only = "accounts.login"
    place.login = replace(place.login, database=forgetful)
    with pytest.raises(RetryableError, match="then run the same command again"):
        await place.log_in()
    assert await place.state() == "ready"
    await forgetful.close()


async def test_a_code_that_never_arrived_is_given_again(place):
    await place.admin.add_rule("auth.signIn", "disconnect")
    assert (await place.log_in()).state == "ready"
    assert (place.codes, await place.times("auth.signIn")) == (1, 2)


async def test_a_lost_answer_to_the_code_of_an_account_with_a_password_asks_for_the_password(place):
    await place.admin.add_rule("auth.signIn", "drop_reply")
    assert (await place.log_in(GRACE)).state == "ready"
    assert (place.codes, await place.times("auth.signIn")) == (1, 1)


@pytest.mark.parametrize(("what", "times"), [("drop_reply", 1), ("disconnect", 2)])
async def test_a_password_whose_answer_was_lost_is_given_again_only_if_it_never_arrived(place, what, times):
    await place.admin.add_rule("auth.checkPassword", what)
    assert (await place.log_in(GRACE)).state == "ready"
    assert await place.times("auth.checkPassword") == times


async def test_a_login_that_ended_after_telegram_had_accepted_it_needs_no_code_to_go_on(place):
    await place.admin.add_rule("users.getFullUser", "error", code=400, text="SOMETHING_ELSE")
    with pytest.raises(FleetError):
        await place.log_in()
    assert await place.state() == "awaiting_code"
    assert (await place.log_in()).state == "ready"
    assert (place.codes, await place.times("auth.signIn")) == (1, 1)


async def test_a_password_that_is_missing_is_asked_for_where_nobody_heard_that_the_code_was_right(place):
    await place.admin.add_rule("account.getPassword", "error", code=400, text="SOMETHING_ELSE")
    with pytest.raises(FleetError):
        await place.log_in(GRACE)
    await place.raw.execute("UPDATE accounts SET state = 'awaiting_code'")
    assert (await place.log_in(GRACE)).state == "ready"
    assert (place.codes, await place.times("auth.signIn")) == (1, 1)


@pytest.mark.parametrize("what", ["drop_reply", "disconnect"])
async def test_a_session_whose_end_was_not_answered_is_over_all_the_same(place, what):
    await place.log_in()
    session = await load_session(place.login.database, place.login.sealer, 1)
    gateway = Gateway(
        place.login.server,
        permission=place.login.governance.permission(1),
        deadline=place.login.deadline,
        dc_id=session.dc_id,
        auth_key=session.auth_key,
    )
    await place.admin.add_rule("auth.logOut", what)
    try:
        await gateway.connect()
        await log_out(gateway)
        await log_out(gateway)
    finally:
        await gateway.close()


@pytest.mark.parametrize("last", ["users.getFullUser", "messages.getDialogs"])
async def test_nobody_is_told_that_an_account_is_ready_while_its_login_is_still_connected(place, last):
    rule = await place.admin.add_rule(last, "late", seconds=None)
    logging_in = asyncio.create_task(place.log_in())
    await until(lambda: _hit(place, rule))
    assert await place.state() == "awaiting_code"
    await place.admin.lift_rule(rule)
    assert (await logging_in).state == "ready"
    assert await place.raw.fetchval("SELECT worker_id FROM accounts") is None
    assert await place.raw.fetchval("SELECT count(*) FROM account_secrets") == 0


async def _hit(place, rule) -> bool:
    return (await place.admin.rule_hits())[rule] > 0


async def test_no_worker_gets_an_account_while_it_is_logged_in_whatever_the_server_forgets(place):
    database, other = place.login.database, await _worker(place)
    held = []

    async def type_slowly() -> str:
        async with lease_account(database, SystemClock(), place.login.lease_settings, 1, other) as lease:
            held.append(lease)
        await place.raw.execute(_KILL_LOCK_HOLDERS)
        async with lease_account(database, SystemClock(), place.login.lease_settings, 1, other) as lease:
            held.append(lease)
        return CODE

    assert (await place.log_in(ask_code=type_slowly)).state == "ready"
    assert held == [None, None]


async def test_a_login_that_lost_its_account_while_a_person_typed_the_code_ends_there(place):
    other = await _worker(place)

    async def type_too_slowly() -> str:
        await place.raw.execute("UPDATE accounts SET worker_id = $1, lease_epoch = lease_epoch + 1", other)
        await place.raw.execute(_KILL_LOCK_HOLDERS)
        await asyncio.Event().wait()
        return CODE

    with pytest.raises(RetryableError, match=r"had to end: .* go on with: worker accounts login 1"):
        await place.log_in(ask_code=type_too_slowly)
    assert (await place.state(), await place.times("auth.signIn")) == ("awaiting_code", 0)
    await place.raw.execute("UPDATE accounts SET worker_id = NULL")
    assert (await place.log_in()).state == "ready", "it goes on where it stopped"
    assert await place.times("auth.sendCode") == 1


async def test_a_login_that_has_lost_its_account_keeps_no_session(place):
    account = await accounts.add_account(place.login.database, ADA)
    await place.log_in(GRACE)
    login = place.login
    session = await load_session(login.database, login.sealer, 2)
    me = Me(1, "Ada", None, is_premium=False)
    late = Tenure(account.id, await _worker(place), 1, 5.0)
    with pytest.raises(FenceLostError):
        await save_login(login.database, login.sealer, late, session, me)
    assert (await place.state(), await place.raw.fetchval("SELECT count(*) FROM account_keys")) == ("new", 1)


async def test_a_silent_owner_is_waited_for_before_its_account_is_logged_in_again(place):
    await place.log_in()
    other = await _worker(place)
    query = "UPDATE accounts SET worker_id = $1, lease_seconds = 1, lease_until = fleet_now()"
    await place.raw.execute(query, other)
    told = []
    place.login = replace(place.login, tell=told.append)
    assert (await place.log_in(anew=True)).state == "ready"
    assert ["its last worker ended without a word" in line for line in told] == [True]


async def _worker(place) -> uuid.UUID:
    worker_id = uuid.uuid4()
    await workers.register(place.login.database, worker_id, host="h", pid=1, version="0", address=None)
    return worker_id
