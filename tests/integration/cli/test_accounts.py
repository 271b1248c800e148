"""``worker accounts`` as a person uses it, against the loopback Telegram."""

import re

import pytest
from accounts_place import ADA, CODE, GRACE, PASSWORD

CHECK_THE_NETWORK = "— check the network or the account's proxy, then run the same command again"


async def test_a_wrong_code_and_a_wrong_password_are_asked_for_again(place):
    code, shown = place.at_a_terminal(
        "add", GRACE, answers=("99999\n", f"{CODE}\n", "wrong\n", f"{PASSWORD}\n")
    )
    assert code == 0, shown
    assert "the code is wrong; try again." in shown
    assert "the password is wrong; try again." in shown
    assert "Grace" in shown
    assert "Premium" in shown
    assert PASSWORD not in shown
    assert "wrong\n\n" not in shown, "what is typed as a password is not shown"


async def test_an_interrupted_login_goes_on_where_it_stopped(place):
    code, _ = place.at_a_terminal("add", GRACE, answers=("\x03",))
    assert code == 130
    assert await place.states() == {"02": "awaiting_code"}
    code, _ = place.at_a_terminal("login", "1", answers=(f"{CODE}\n", "\x03"))
    assert code == 130
    assert await place.states() == {"02": "awaiting_password"}
    sent = len(await place.admin.calls("auth.sendCode"))
    code, shown = place.at_a_terminal("login", "1", answers=(f"{PASSWORD}\n",))
    assert code == 0, shown
    assert await place.states() == {"02": "ready"}
    assert len(await place.admin.calls("auth.sendCode")) == sent == 1


async def test_files_answer_where_nobody_can(place, tmp_path):
    files = ("--code-file", str(tmp_path / "code"), "--password-file", str(tmp_path / "password"))
    first = await place.run("add", GRACE, *files)
    assert (first.code, await place.states()) == (2, {"02": "awaiting_code"})
    assert f"write it into {tmp_path / 'code'} and run: worker accounts login 1" in first.err
    (tmp_path / "code").write_text(f"{CODE}\n")
    (tmp_path / "password").write_text(f"{PASSWORD}\n")
    second = await place.run("login", "1", *files)
    assert second.code == 0, second
    assert await place.states() == {"02": "ready"}


@pytest.mark.parametrize(
    ("method", "error", "said"),
    [
        ("auth.sendCode", (420, "FLOOD_WAIT_7200"), "try again in .* hours: worker accounts login 1"),
        ("auth.sendCode", (400, "PHONE_NUMBER_BANNED"), "has banned this number"),
        ("auth.sendCode", (400, "PHONE_NUMBER_INVALID"), "does not take this phone number"),
        ("auth.signIn", (400, "PHONE_CODE_EXPIRED"), "too old — have another one sent"),
        ("auth.signIn", (400, "PHONE_CODE_INVALID"), "code is wrong — give the right one"),
        ("auth.signIn", (400, "PHONE_NUMBER_UNOCCUPIED"), "no Telegram account has this number"),
        ("auth.signIn", (401, "USER_DEACTIVATED_BAN"), "closed this account — use another"),
        ("auth.sendCode", (400, "API_ID_PUBLISHED_FLOOD"), "get one of your own at my.telegram.org"),
        ("auth.sendCode", (406, "UPDATE_APP_TO_LOGIN"), "newer program .* install the newest version"),
        ("auth.sendCode", (400, "NOBODY_KNOWS_YET"), "begin anew: worker accounts login 1 --again"),
        ("help.getConfig", (400, "CONNECTION_API_ID_INVALID"), "do not fit — check both at my.telegram.org"),
    ],
)
async def test_every_refusal_names_the_next_step(place, tmp_path, method, error, said):
    (tmp_path / "code").write_text(CODE)
    await place.admin.add_rule(method, "error", code=error[0], text=error[1], count=0)
    ended = await place.run("add", ADA, "--code-file", str(tmp_path / "code"))
    assert ended.code == 2
    assert re.search(said, ended.err), ended.err
    assert ADA not in ended.err + ended.out


async def test_a_network_error_leaves_the_account_as_it_was(place, tmp_path):
    (tmp_path / "code").write_text(CODE)
    assert (await place.run("add", ADA, "--code-file", str(tmp_path / "code"))).code == 0
    place.settings["telegram__port"] = 1
    ended = await place.run("login", "1", "--again", "--code-file", str(tmp_path / "code"))
    assert (ended.code, ended.err.count("\n")) == (1, 1), ended
    assert ended.err.endswith(f"{CHECK_THE_NETWORK}\n"), ended.err
    assert await place.states() == {"01": "ready"}


async def test_a_login_that_gets_no_answer_names_the_next_step(place, tmp_path):
    (tmp_path / "code").write_text(CODE)
    place.settings |= {"telegram__call_timeout_secs": 2, "rate_limits__max_retries": 0}
    await place.admin.add_rule("auth.signIn", "stall", count=0)
    ended = await place.run("add", ADA, "--code-file", str(tmp_path / "code"))
    assert (ended.code, ended.err.count("\n")) == (1, 1), ended
    assert ended.err.endswith(f"{CHECK_THE_NETWORK}\n"), ended.err
    await place.admin.clear_rules()
    assert (await place.run("add", ADA, "--code-file", str(tmp_path / "code"))).code == 0


async def test_an_account_of_another_data_centre_logs_in_there(place, tmp_path):
    (tmp_path / "code").write_text(CODE)
    await place.admin.add_rule("auth.sendCode", "error", code=303, text="PHONE_MIGRATE_4")
    ended = await place.run("add", ADA, "--code-file", str(tmp_path / "code"))
    assert ended.code == 0, ended


async def test_one_failing_login_neither_stops_nor_fails_another(place, tmp_path):
    (tmp_path / "code").write_text(CODE)
    ended = await place.run("add", "+10000000077", ADA, "--code-file", str(tmp_path / "code"))
    assert ended.code == 2
    assert "1 of 2 accounts are not logged in" in ended.err
    assert await place.states() == {"77": "new", "01": "ready"}


async def test_a_disabled_account_rests_until_it_is_enabled(place, tmp_path):
    (tmp_path / "code").write_text(CODE)
    await place.run("add", ADA, "--code-file", str(tmp_path / "code"))
    assert (await place.run("disable", "1")).code == 0
    assert (await place.run("login", "1")).code == 2
    assert await place.states() == {"01": "disabled"}
    assert (await place.run("enable", "1")).code == 0
    assert await place.states() == {"01": "ready"}


async def test_a_banned_account_is_not_said_to_be_enabled(place, tmp_path):
    (tmp_path / "code").write_text(CODE)
    await place.admin.ban_account(ADA)
    assert (await place.run("add", ADA, "--code-file", str(tmp_path / "code"))).code == 2
    ended = await place.run("enable", "1")
    assert (ended.code, ended.out, await place.states()) == (2, "", {"01": "banned"})
    assert "Telegram has banned account 1 — if it is free again: worker accounts login 1" in ended.err


async def test_an_account_that_is_removed_is_logged_out(place, tmp_path):
    (tmp_path / "code").write_text(CODE)
    await place.run("add", ADA, "--code-file", str(tmp_path / "code"))
    code, shown = place.at_a_terminal("remove", "1", answers=("n\n",))
    assert code == 1, shown
    ended = await place.run("remove", "1", "--yes")
    assert (ended.code, await place.states()) == (0, {}), ended
    assert [call["ok"] for call in await place.admin.calls("auth.logOut")] == [True]
