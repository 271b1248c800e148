"""``worker accounts add`` at a terminal: whatever Telegram answers, the person knows what to do next."""

import re
from dataclasses import dataclass

import pytest
from accounts_place import ADA, CODE, GRACE, PASSWORD
from worker_command import installed_worker

# Commands are processes of their own; a busy machine takes seconds to start one.
DAY = 24 * 60 * 60


@dataclass(frozen=True, slots=True)
class Refusal:
    """What a person types, what Telegram makes of it, and what the person reads in the end."""

    answers: tuple[str, ...]
    said: str
    state: str
    phone: str = ADA
    rule: tuple[str, int, str] | None = None


REFUSALS = {
    "wrong code": Refusal(
        ("11111", "22222", "33333"),
        "the code is wrong — give the right one: worker accounts login 1",
        "awaiting_code",
    ),
    "wrong password": Refusal(
        (CODE, "hunter1", "hunter2", "hunter3"),
        "the password is wrong — give the right one: worker accounts login 1; Telegram's apps can reset it",
        "awaiting_password",
        phone=GRACE,
    ),
    "expired code": Refusal(
        (CODE, CODE, CODE),
        "the code is too old — have another one sent: worker accounts login 1",
        "awaiting_code",
        rule=("auth.signIn", 400, "PHONE_CODE_EXPIRED"),
    ),
    "flood wait of a day": Refusal(
        (),
        "Telegram wants this number to wait — try again in 2[45] hours: worker accounts login 1",
        "new",
        rule=("auth.sendCode", 420, f"FLOOD_WAIT_{DAY}"),
    ),
    "too many codes": Refusal(
        (),
        "Telegram wants no more logins of this number for now — try again tomorrow: worker accounts login 1",
        "new",
        rule=("auth.sendCode", 400, "PHONE_NUMBER_FLOOD"),
    ),
}


async def test_the_right_code_is_all_that_an_account_without_a_password_needs(place):
    code, shown = place.at_a_terminal("add", ADA, answers=(f"{CODE}\n",))
    assert code == 0, shown
    assert "Ada (+1•••••••01) is ready; it is account 1." in shown
    assert await place.states() == {"01": "ready"}


async def test_a_password_is_asked_for_after_the_code_and_not_shown(place):
    code, shown = place.at_a_terminal("add", GRACE, answers=(f"{CODE}\n", f"{PASSWORD}\n"))
    assert code == 0, shown
    assert "Grace (+1•••••••02) is ready, Premium; it is account 1." in shown
    assert PASSWORD not in shown
    assert await place.states() == {"02": "ready"}


async def test_a_number_that_was_not_given_is_asked_for(place):
    code, shown = place.at_a_terminal("add", answers=("+1 000 000-0001\n", f"{CODE}\n"))
    assert code == 0, shown
    assert "Phone number (with its country code): " in shown
    assert await place.states() == {"01": "ready"}
    code, shown = place.at_a_terminal("login", "--again", answers=(f"{ADA}\n", f"{CODE}\n"))
    assert code == 0, shown
    assert "Ada (+1•••••••01) is ready; it is account 1." in shown


async def test_what_is_typed_and_is_no_number_is_refused_with_how_to_write_it(place):
    code, shown = place.at_a_terminal("add", answers=("0301234567\n",))
    assert code == 2, shown
    assert "that is no phone number — write it with its country code" in shown
    assert await place.states() == {}


@pytest.mark.parametrize("command", ["add", "login"])
async def test_without_a_terminal_a_number_that_was_not_given_is_one_line(place, command):
    ended = await place.run(command)
    assert (ended.code, ended.out, ended.err.count("\n")) == (2, "", 1), ended
    assert f"no terminal to ask at — run: worker accounts {command} PHONE" in ended.err


@pytest.mark.parametrize("refusal", REFUSALS.values(), ids=list(REFUSALS))
async def test_a_refused_login_fails_with_the_next_step(place, refusal):
    if refusal.rule:
        method, error, text = refusal.rule
        await place.admin.add_rule(method, "error", code=error, text=text, count=0)
    typed = tuple(f"{answer}\n" for answer in refusal.answers)
    code, shown = place.at_a_terminal("add", refusal.phone, answers=typed)
    assert code == 2, shown
    last = shown.strip().splitlines()[-1]
    assert re.fullmatch(f"worker: {refusal.said}", last), shown
    assert "hunter" not in shown, "what is typed as a password is not shown"
    assert refusal.phone not in shown
    assert "Traceback" not in shown
    assert await place.states() == {refusal.phone[-2:]: refusal.state}


async def test_the_next_step_after_a_refusal_leads_to_a_login(place):
    refused = ("11111\n", "22222\n", "33333\n")
    assert place.at_a_terminal("add", ADA, answers=refused)[0] == 2
    code, shown = place.at_a_terminal("login", "1", answers=(f"{CODE}\n",))
    assert code == 0, shown
    assert await place.states() == {"01": "ready"}


async def test_the_installed_command_logs_an_account_in(place, tmp_path):
    (tmp_path / "code").write_text(CODE)
    ended = await installed_worker(
        "accounts", "add", ADA, "--code-file", str(tmp_path / "code"), **place.settings
    )
    assert ended.code == 0, ended
    assert await place.states() == {"01": "ready"}
