"""Failpoints: real signals, at the place and the count that was asked for."""

import contextlib
import os
import signal
import subprocess
import sys

import pytest
from hang_guard import HANG_SECONDS

_SCRIPT = """
import sys
from worker import faults
def say(text):
    print(text, flush=True)
try:
    for number in range(3):
        with faults.around("publish.send"):
            say(f"sent {number}")
        with faults.around("db.record"):
            say(f"recorded {number}")
    say("end")
finally:
    say("finally")
"""


def _run(spec, script=_SCRIPT):
    env = {**os.environ, "WORKER_FAULTS": spec}
    return subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, env=env)


def test_without_a_plan_nothing_happens():
    done = _run("")
    assert done.returncode == 0
    assert done.stdout.splitlines()[-2:] == ["end", "finally"]


@pytest.mark.parametrize(
    ("spec", "last_line"),
    [
        ("kill=2", "sent 0"),
        ("kill=3", "sent 0"),
        ("kill=5", "recorded 0"),
        ("kill=publish.send:before:2", "recorded 0"),
        ("kill=publish.send:after:2", "sent 1"),
        ("kill=db.record:after:3", "recorded 2"),
    ],
)
def test_the_process_kills_itself_at_the_asked_reach_and_runs_no_finally(spec, last_line):
    done = _run(spec)
    assert done.returncode == -signal.SIGKILL
    assert done.stdout.splitlines()[-1] == last_line


def test_a_count_that_is_never_reached_lets_the_run_end():
    assert _run("kill=99").returncode == 0


def test_every_reach_is_recorded_up_to_the_kill(tmp_path):
    record = tmp_path / "reached"
    done = _run(f"record={record},kill=publish.send:after:2")
    assert done.returncode == -signal.SIGKILL
    once = ["publish.send:before", "publish.send:after", "db.record:before", "db.record:after"]
    assert record.read_text().splitlines() == [*once, "publish.send:before", "publish.send:after"]


def test_an_effect_that_raises_is_not_reached_afterwards(tmp_path):
    record = tmp_path / "reached"
    done = _run(
        f"record={record}", "from worker import faults\nwith faults.around('x.y'):\n    raise SystemExit(3)"
    )
    assert done.returncode == 3
    assert record.read_text() == "x.y:before\n"


def test_the_process_stops_itself_until_it_is_continued():
    env = {**os.environ, "WORKER_FAULTS": "stop=publish.send:after:1"}
    process = subprocess.Popen([sys.executable, "-c", _SCRIPT], stdout=subprocess.PIPE, text=True, env=env)
    try:
        _, status = os.waitpid(process.pid, os.WUNTRACED)
        assert os.WIFSTOPPED(status)
        process.send_signal(signal.SIGCONT)
        output, _ = process.communicate(timeout=HANG_SECONDS)
        assert process.returncode == 0
        assert output.splitlines()[-1] == "finally"
    finally:
        with contextlib.suppress(ProcessLookupError):
            process.kill()


@pytest.mark.parametrize(
    "spec", ["explode=1", "kill=", "kill=publish.send", "kill=publish.send:during:1", "record="]
)
def test_a_plan_that_cannot_be_understood_is_refused_at_the_first_reach(spec):
    script = """
from worker import faults
from worker.errors import UserError
try:
    faults.reach("x.y", "before")
except UserError as error:
    print(error)
"""
    assert "WORKER_FAULTS has" in _run(spec, script).stdout
