"""An account behind a proxy from its very first connection: Telegram never sees where it really is."""

import asyncio

import pytest
from accounts_place import CODE, GRACE, PASSWORD
from proxy_servers import KINDS, OUTSIDE, link_to, running
from worker_command import worker_at_a_terminal


@pytest.mark.parametrize("kind", KINDS)
async def test_a_login_passes_through_the_proxy_alone(place, tmp_path, kind):
    (tmp_path / "code").write_text(CODE)
    (tmp_path / "password").write_text(PASSWORD)
    telegram = place.settings["telegram__host"], place.settings["telegram__port"]
    async with running(KINDS[kind].server(telegram)) as proxy:
        files = ("--code-file", str(tmp_path / "code"), "--password-file", str(tmp_path / "password"))
        link = link_to(kind, proxy)
        (tmp_path / "proxy").write_text(f"{link}\n")
        ended = await place.run("add", GRACE, *files, "--proxy-file", str(tmp_path / "proxy"))
        assert ended.code == 0, ended
        assert proxy.passed > 0
        shown = await place.run("show", "1")
    made = await place.admin.connections()
    assert {connection["address"] for connection in made} == {OUTSIDE}
    assert await place.states() == {"02": "ready"}
    for secret in KINDS[kind].secrets:
        assert secret not in ended.out + ended.err + shown.out


async def test_a_proxy_that_does_not_answer_is_one_line_and_nothing_goes_past_it(place, tmp_path):
    (tmp_path / "code").write_text(CODE)
    proxy = "http://127.0.0.1:1"
    ended = await place.run("add", GRACE, "--code-file", str(tmp_path / "code"), "--proxy", proxy)
    assert (ended.code, ended.err.count("\n")) == (1, 1), ended
    assert "check the network or the account's proxy, then run the same command again" in ended.err
    assert await place.admin.connections() == []
    assert await place.states() == {"02": "new"}


@pytest.mark.parametrize(
    "address",
    [
        "socks5://user:hunter2@127.0.0.1:1080",
        "user:hunter2@127.0.0.1:1",
        "tg://proxy?server=a&port=1&secret=hunter2",
    ],
)
async def test_a_password_on_the_command_line_is_refused_and_not_repeated(place, address):
    for command in ("add", "login"):
        ended = await place.run(command, GRACE, "--proxy", address)
        assert (ended.code, ended.err.count("\n")) == (2, 1), ended
        assert "can be read by every user of this machine — leave it out" in ended.err
        assert "hunter2" not in ended.err
    assert await place.states() == {}


async def test_a_proxy_s_password_is_asked_for_at_a_terminal_and_nowhere_else(place):
    with_user = ("--proxy", "socks5://user@127.0.0.1:1")
    ended = await place.run("add", GRACE, *with_user)
    assert (ended.code, "give --proxy-file FILE" in ended.err) == (2, True), ended
    asked = await asyncio.to_thread(
        worker_at_a_terminal, "accounts", "add", GRACE, *with_user, answers=("hunter2\n",), **place.settings
    )
    assert "Password of the proxy (127.0.0.1:1): " in asked.out
    assert "hunter2" not in asked.out
    assert await place.states() == {"02": "new"}


async def test_the_address_of_a_proxy_comes_from_one_place(place, tmp_path):
    (tmp_path / "proxy").write_text("\n")
    for options, said in (
        (("--proxy-file", str(tmp_path / "proxy")), "is empty"),
        (("--proxy-file", str(tmp_path / "nowhere")), "cannot read"),
        (("--proxy-file", str(tmp_path / "proxy"), "--proxy", "none"), "give one of them"),
    ):
        ended = await place.run("add", GRACE, *options)
        assert (ended.code, said in ended.err) == (2, True), ended


async def test_an_account_is_shown_without_the_key_that_its_proxy_was_sealed_with(place, tmp_path):
    (tmp_path / "code").write_text(CODE)
    await place.run("add", GRACE, "--code-file", str(tmp_path / "code"), "--proxy", "http://127.0.0.1:1")
    place.settings["secret_key"] = "B" * 43 + "="
    shown = await place.run("show", "1")
    assert shown.code == 0, shown
    assert "proxy           unknown: a stored session does not open with this secret key" in shown.out
