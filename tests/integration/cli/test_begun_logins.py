"""Logins that were begun before, several at once, or that something stands in the way of."""

import asyncio
import contextlib

import pytest
from accounts_place import ADA, CODE, GRACE, PASSWORD
from hang_guard import HANG_SECONDS
from loopback_telegram import Telegram

from worker.sandbox.admin_client import SandboxAdmin
from worker.store.locks import LockSession


@pytest.fixture
def files(tmp_path):
    """The options that name both files; neither is there yet."""
    return ("--code-file", str(tmp_path / "code"), "--password-file", str(tmp_path / "password"))


@pytest.fixture
def answer(tmp_path):
    """Write into the files what Telegram wants to hear."""

    def write(code=CODE, password=PASSWORD):
        (tmp_path / "code").write_text(code)
        (tmp_path / "password").write_text(password)

    return write


@pytest.mark.parametrize(("known", "state"), [("", "awaiting_code"), (CODE, "awaiting_password")])
async def test_a_begun_login_that_telegram_has_forgotten_begins_anew(
    place, tmp_path, files, answer, known, state
):
    answer(code=known, password="")
    await place.run("add", GRACE, *files)
    assert await place.states() == {"02": state}
    answer()
    with contextlib.closing(Telegram(tmp_path / "other")) as forgetful:
        admin = SandboxAdmin.announced(forgetful.facts)
        await admin.create_account(GRACE, "Grace", password=PASSWORD)
        for name in ("host", "port", "public_key"):
            place.settings[f"telegram__{name}"] = forgetful.facts[name]
        ended = await place.run("login", "1", *files)
    assert ended.code == 0, ended
    assert "has lapsed" in ended.out
    assert await place.states() == {"02": "ready"}


@pytest.mark.parametrize("refusal", [(406, "AUTH_KEY_DUPLICATED"), (401, "AUTH_KEY_UNREGISTERED")])
async def test_a_begun_login_whose_key_is_worth_nothing_begins_anew(place, files, answer, refusal):
    answer(password="")
    await place.run("add", GRACE, *files)
    answer()
    before = {connection["auth_key_id"] for connection in await place.admin.connections()}
    await place.admin.add_rule("auth.checkPassword", "error", code=refusal[0], text=refusal[1])
    ended = await place.run("login", "1", *files)
    assert (ended.code, await place.states()) == (0, {"02": "ready"}), ended
    after = {connection["auth_key_id"] for connection in await place.admin.connections()}
    assert len(after - before) == 1, "the new session has a key of its own"


async def test_whoever_got_no_code_has_another_one_sent(place, files, answer):
    await place.run("add", GRACE, *files)
    await place.run("login", "1", *files)
    assert len(await place.admin.calls("auth.sendCode")) == 1
    answer()
    assert (await place.run("login", "1", "--again", *files)).code == 0
    assert len(await place.admin.calls("auth.sendCode")) == 2


async def test_several_logins_run_at_once(place, files, answer):
    answer()
    rule = await place.admin.add_rule("auth.sendCode", "late", seconds=None, account=ADA)
    both = asyncio.create_task(place.run("add", ADA, GRACE, *files))
    # The one gets its answer while the other still waits for its own.
    while not await place.admin.calls("auth.sendCode"):
        assert not both.done()
        await asyncio.sleep(0.05)
    await place.admin.lift_rule(rule)
    assert (await both).code == 0
    assert len(await place.admin.calls("auth.sendCode")) == 2


async def test_a_number_given_twice_is_logged_in_once(place, files, answer):
    answer()
    ended = await place.run("add", ADA, "+1 000 000-0001", *files)
    assert (ended.code, ended.out.count("is ready")) == (0, 1), ended
    assert len(await place.admin.calls("auth.sendCode")) == 1


async def test_a_number_may_be_written_with_blanks_wherever_an_account_is_named(place, files, answer):
    answer()
    await place.run("add", ADA, *files)
    shown = await place.run("show", "+1 000 000-0001")
    assert (shown.code, "Ada" in shown.out) == (0, True), shown


async def test_an_account_in_use_is_named_with_the_way_to_log_it_in(place, files, answer, database_url):
    answer()
    await place.run("add", ADA, *files)
    locks = await LockSession.open(database_url, answer_within=HANG_SECONDS)
    try:
        assert await locks.try_account(1)
        refused = await place.run("login", "1", "--again", *files)
    finally:
        await locks.close()
    assert (refused.code, refused.err.count("\n")) == (2, 1), refused
    assert "account 1 is in use by a worker, or by another login" in refused.err
    assert refused.err.endswith("worker accounts disable 1; then run: worker accounts login 1 --again\n")
    assert (await place.run("disable", "1")).code == 0
    assert (await place.run("login", "1", "--again", *files)).code == 0
    assert await place.states() == {"01": "ready"}


async def test_an_application_that_telegram_does_not_know_is_one_clear_line(place, files, answer):
    answer()
    place.settings["telegram__api_hash"] = "not a hash"
    refused = await place.run("add", ADA, *files)
    assert (refused.code, refused.err.count("\n")) == (2, 1), refused
    assert "telegram.api_id and telegram.api_hash do not fit — check both at my.telegram.org" in refused.err
    assert await place.states() == {"01": "new"}


@pytest.mark.parametrize("missing", ["telegram__api_id", "telegram__api_hash"])
async def test_an_application_that_is_not_set_is_one_clear_line(place, files, missing):
    del place.settings[missing]
    refused = await place.run("add", ADA, *files)
    assert (refused.code, refused.err.count("\n")) == (2, 1), refused
    assert "telegram.api_id and telegram.api_hash are not set — get them at my.telegram.org" in refused.err
    assert await place.states() == {}


async def test_a_login_that_begins_anew_ends_the_session_before_once_the_other_one_is_kept(
    place, files, answer
):
    answer()
    await place.run("add", ADA, *files)
    (before,) = await place.admin.calls("auth.signIn")
    assert (await place.run("login", "1", "--again", *files)).code == 0
    _, after = await place.admin.calls("auth.signIn")
    (ended,) = await place.admin.calls("auth.logOut")
    assert ended["auth_key_id"] == before["auth_key_id"] != after["auth_key_id"]
    assert ended["ok"]
    assert ended["at"] > after["at"]
    # An end that Telegram has made already is no failure of the login.
    await place.admin.revoke_sessions(ADA)
    assert (await place.run("login", "1", "--again", *files)).code == 0
    assert await place.states() == {"01": "ready"}


async def test_a_login_that_begins_anew_ends_the_session_that_the_one_before_was_given(place, files, answer):
    answer()
    await place.admin.add_rule("users.getFullUser", "error", code=400, text="NOBODY_KNOWS_YET")
    assert (await place.run("add", ADA, *files)).code != 0
    (before,) = await place.admin.calls("auth.signIn")
    assert before["ok"], "Telegram has logged it in"
    assert (await place.run("login", "1", "--again", *files)).code == 0
    (ended,) = await place.admin.calls("auth.logOut")
    assert (ended["auth_key_id"], ended["ok"]) == (before["auth_key_id"], True)
    assert await place.states() == {"01": "ready"}
