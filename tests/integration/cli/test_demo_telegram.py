"""The demo's Telegram: shared by whoever needs it, outliving nobody."""

import contextlib
import subprocess
import sys

import psutil
import pytest
from hang_guard import HANG_SECONDS

from worker.demo.telegram import forget_telegram, open_telegram
from worker.sandbox.admin_client import SandboxAdmin

_HOLD = """
import sys
from pathlib import Path
from worker.demo.telegram import open_telegram
with open_telegram(Path(sys.argv[1])) as telegram:
    print(telegram.port, flush=True)
    sys.stdin.readline()
"""


class Other:
    """Another process that uses the Telegram of this folder."""

    def __init__(self, folder):
        self._process = subprocess.Popen(
            [sys.executable, "-c", _HOLD, str(folder)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self.port = int(self._process.stdout.readline())

    def leave(self):
        self._process.communicate("\n", timeout=HANG_SECONDS)

    def kill(self):
        self._process.kill()
        self._process.communicate(timeout=HANG_SECONDS)


@pytest.fixture
def other(tmp_path):
    started = Other(tmp_path)
    yield started
    started.kill()


def servers_of(folder):
    processes = psutil.process_iter(["cmdline"])
    return [
        each
        for each in processes
        if {"worker.sandbox", f"{folder}/telegram"} <= set(each.info["cmdline"] or [])
    ]


def has_ended(server):
    with contextlib.suppress(psutil.TimeoutExpired):
        server.wait(timeout=HANG_SECONDS)
    # Where nobody reaps orphans, as in a container without an init, a zombie stays behind.
    return not server.is_running() or server.status() == psutil.STATUS_ZOMBIE


def test_it_ends_with_the_block(tmp_path):
    with open_telegram(tmp_path):
        (server,) = servers_of(tmp_path)
    assert not server.is_running()


def test_two_processes_use_one_server_and_the_first_to_leave_does_not_end_it(tmp_path, other):
    with open_telegram(tmp_path) as telegram:
        assert telegram.port == other.port
        other.leave()
        (server,) = servers_of(tmp_path)
        assert telegram.admin.do_now("create_account", phone="+10000000009", first_name="Ada")["user_id"]
    assert has_ended(server)


def test_it_ends_when_its_only_user_is_killed_and_the_next_one_starts_it_on_the_same_state(tmp_path, other):
    (server,) = servers_of(tmp_path)
    state = tmp_path / "telegram"
    made = SandboxAdmin("127.0.0.1", int((state / "admin.port").read_text()), state / "admin.token")
    made.do_now("create_account", phone="+10000000009", first_name="Ada")
    other.kill()
    assert has_ended(server)
    with open_telegram(tmp_path) as telegram:
        assert telegram.port == other.port
        # Refused for a number that nobody has.
        telegram.admin.do_now("set_password", phone="+10000000009", password=None)


def test_whoever_comes_while_the_killed_ones_server_still_runs_has_a_server_all_the_same(tmp_path, other):
    other.kill()
    with open_telegram(tmp_path) as telegram:
        assert telegram.admin.do_now("create_account", phone="+10000000009", first_name="Ada")["user_id"]


def test_it_is_forgotten_only_after_the_killed_ones_server_has_ended(tmp_path, other):
    (server,) = servers_of(tmp_path)
    other.kill()
    forget_telegram(tmp_path)
    assert has_ended(server)
    assert not (tmp_path / "telegram").exists()
