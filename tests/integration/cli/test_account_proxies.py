"""An account behind a proxy from its very first connection: Telegram never sees where it really is."""

import pytest
from accounts_place import CODE, GRACE, PASSWORD
from proxy_servers import KINDS, OUTSIDE, link_to, running


@pytest.mark.parametrize("kind", KINDS)
async def test_a_login_passes_through_the_proxy_alone(place, tmp_path, kind):
    (tmp_path / "code").write_text(CODE)
    (tmp_path / "password").write_text(PASSWORD)
    telegram = place.settings["telegram__host"], place.settings["telegram__port"]
    async with running(KINDS[kind].server(telegram)) as proxy:
        files = ("--code-file", str(tmp_path / "code"), "--password-file", str(tmp_path / "password"))
        link = link_to(kind, proxy)
        ended = await place.run("add", GRACE, *files, "--proxy", link)
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


async def test_an_account_is_shown_without_the_key_that_its_proxy_was_sealed_with(place, tmp_path):
    (tmp_path / "code").write_text(CODE)
    await place.run("add", GRACE, "--code-file", str(tmp_path / "code"), "--proxy", "http://127.0.0.1:1")
    place.settings["secret_key"] = "B" * 43 + "="
    shown = await place.run("show", "1")
    assert shown.code == 0, shown
    assert "proxy           unknown: a stored session does not open with this secret key" in shown.out
