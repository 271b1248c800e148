"""Who may give the loopback Telegram orders: those who can read its state directory, and nobody else."""

import asyncio
import json
import os
import stat
from pathlib import Path

import pytest
from running_sandbox import RunningSandbox

from worker.errors import UserError
from worker.sandbox.admin_client import SandboxAdmin, SandboxAdminError
from worker.sandbox.listening import close_to_others


async def _said_to(sandbox, *lines):
    """What the admin port answers to these lines, until it hangs up."""
    reader, writer = await asyncio.open_connection(sandbox.facts["host"], sandbox.facts["admin_port"])
    writer.write(b"".join(line + b"\n" for line in lines))
    writer.write_eof()
    answers = [json.loads(line) for line in (await reader.read()).splitlines()]
    writer.close()
    return answers


async def test_an_order_without_the_token_is_refused_and_nothing_after_it_is_heard(sandbox):
    order = {"do": "create_account", "with": {"phone": "+10000000077", "first_name": "Eve"}}
    (answer,) = await _said_to(sandbox, json.dumps(order).encode(), json.dumps(order).encode())
    assert not answer["ok"]
    assert "token" in answer["error"]
    with pytest.raises(SandboxAdminError, match="no account has the number"):
        await sandbox.admin.set_premium("+10000000077", True)


@pytest.mark.parametrize("token", ["", "wrong", 7, None, "\ud800"])
async def test_a_wrong_token_is_refused(sandbox, token):
    (answer,) = await _said_to(sandbox, json.dumps({"token": token, "do": "connections"}).encode())
    assert not answer["ok"]


async def test_a_web_page_that_posts_orders_to_the_port_is_not_heard(sandbox, tmp_path):
    (secret := tmp_path / "secret").write_text("of its user")
    order = {"do": "post_document", "with": {"channel_id": 1, "path": str(secret), "file_name": "x"}}
    page = [b"POST / HTTP/1.1\r", b"Host: 127.0.0.1\r", b"\r", json.dumps(order).encode()]
    assert [answer["ok"] for answer in await _said_to(sandbox, *page)] == [False]


async def test_the_token_is_made_anew_at_each_start_for_the_server_s_user_alone(tmp_path):
    sandbox = RunningSandbox.start("--state", str(tmp_path / "state"))
    try:
        admin, file = sandbox.admin, Path(sandbox.facts["admin_token_file"])
        first = file.read_text()
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
        assert stat.S_IMODE(file.parent.stat().st_mode) == 0o700
        sandbox.restart()
        assert file.read_text() != first
        # A client goes on across restarts.
        assert await SandboxAdmin.announced(sandbox.facts).connections() == await admin.connections()
    finally:
        sandbox.stop()


def test_a_state_directory_that_others_could_enter_is_closed(tmp_path):
    (state := tmp_path / "state").mkdir()
    state.chmod(0o755)
    (state / "lock").touch()
    close_to_others(state)
    assert stat.S_IMODE(state.stat().st_mode) == 0o700


def test_a_folder_with_other_things_in_it_is_left_as_it_is_and_refused(tmp_path):
    (tmp_path / "letters").touch()
    tmp_path.chmod(0o755)
    with pytest.raises(UserError, match=r"open to other users, and holds more .* — choose another --state"):
        close_to_others(tmp_path)
    assert stat.S_IMODE(tmp_path.stat().st_mode) == 0o755


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a folder away")
def test_a_state_directory_of_another_user_is_refused(tmp_path):
    (state := tmp_path / "state").mkdir(mode=0o700)
    os.chown(state, 1, 1)
    with pytest.raises(UserError, match="belongs to another user"):
        close_to_others(state)
