"""What code that took a parser over could still do: nothing to the machine, and nothing to its user."""

import asyncio
import json
import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest
import structlog

from worker.archives import landlock
from worker.archives.call_filter import (
    FILES,
    FORKS,
    MACHINES,
    NONE,
    OTHER_PROCESSES,
    PRIVILEGES,
    PROGRAMS,
    SHARED,
    SOCKETS,
)
from worker.archives.nursery import Nursery

_ROOT = Path(landlock.__file__).parents[2]
# Run by a process that has given up its rights; each attempt ends with what it got, or with the name of a refusal.
_ATTEMPTS = """
import ctypes, fcntl, json, os, resource, signal, socket, subprocess, sys, termios, threading
from worker.archives.confinement import confine_opener, confine_parser
from worker.archives.landlock import EXECUTE, READ_FILE, Reachable
from worker.archives.rar_tool import LIBRARIES, Driver, Tool
from worker.domain.listing import Limits
role, allowed, secret, victim = sys.argv[1:]
terminal = os.open("/dev/null", os.O_RDONLY)
libc = ctypes.CDLL(None, use_errno=True)
driver = Driver(Tool("unrar", "/bin/sh", True))
if role == "parser":
    kept = confine_parser(Limits())
else:
    needs = [Reachable(path, EXECUTE | READ_FILE) for path in (*LIBRARIES, *map(os.path.realpath, ("/bin/cat", "/bin/sh")))]
    kept = confine_opener(Limits(), [*needs, Reachable(allowed, READ_FILE)])

def prints(*command):
    return subprocess.run(command, stdin=subprocess.PIPE, capture_output=True, text=True).stdout

def program_says(script):
    program = driver._start(["/bin/sh", "-c", script])
    said = program.stdout.read().decode()
    program.wait()
    return said

def shared_memory():
    number = libc.shmget(0, 4096, 0o1600)
    return libc.shmctl(number, 0, 0) if number >= 0 else os.strerror(ctypes.get_errno())

def works_in_a_thread():
    done = []
    thread = threading.Thread(target=lambda: done.append("works"))
    thread.start()
    thread.join()
    return done[0]

attempts = {
    "read its own": lambda: open(allowed).read(),
    "read a secret": lambda: open(secret).read(),
    "list a folder": lambda: os.listdir(os.path.dirname(secret)),
    "write": lambda: open(os.path.dirname(secret) + "/made", "w"),
    "open a socket": socket.socket,
    "open a pair": socket.socketpair,
    "signal": lambda: os.kill(int(victim), 0),
    "trace": lambda: libc.ptrace(16, int(victim), 0, 0) and os.strerror(ctypes.get_errno()),
    "change a mode": lambda: os.chmod(secret, 0o666),
    "change a time": lambda: os.utime(secret, (0, 0)),
    "limit another": lambda: resource.prlimit(int(victim), resource.RLIMIT_CPU),
    "raise a limit": lambda: resource.setrlimit(resource.RLIMIT_AS, (2**50, 2**50)),
    "type": lambda: fcntl.ioctl(terminal, termios.TIOCSTI, b"x"),
    "run its program": lambda: prints("/bin/cat", allowed),
    "run its program on a secret": lambda: prints("/bin/cat", secret),
    "run another": lambda: prints("/bin/ls", "/"),
    "be two": lambda: os.fork() or os._exit(0),
    "share memory": shared_memory,
    "work in a thread": works_in_a_thread,
    "run a program": lambda: program_says("echo alone"),
    "run a program that is two": lambda: program_says("(echo two) && echo more"),
    "dump core": lambda: [resource.getrlimit(resource.RLIMIT_CORE), libc.prctl(3, 0, 0, 0, 0)],
}
got = {}
for name, attempt in attempts.items():
    try:
        got[name] = attempt()
    except (OSError, ValueError) as error:
        got[name] = type(error).__name__
print(json.dumps([kept, got]))
"""
_EVERYTHING = ["limits", "no core dump", "no capability", "no file", "no socket"]


@pytest.fixture
def confined(tmp_path):
    (allowed := tmp_path / "volume").write_text("bytes")
    (secret := tmp_path / "secret").write_text("a key")
    secret.chmod(0o600)

    def attempt(role):
        done = subprocess.run(
            [sys.executable, "-c", _ATTEMPTS, role, allowed, secret, str(os.getpid())],
            capture_output=True, text=True, cwd="/", env={"PYTHONPATH": str(_ROOT), "LC_ALL": "C.UTF-8"},
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        kept, got = json.loads(done.stdout)
        if kept != _EVERYTHING:
            pytest.skip(f"this kernel keeps less: {', '.join(kept)}")
        assert (secret.read_text(), secret.stat().st_mode & 0o777) == ("a key", 0o600)
        return got

    return attempt


def test_w11_a_parser_reaches_no_file_no_socket_no_program_and_no_process(confined):
    got = confined("parser")
    assert got.pop("dump core") == [[0, 0], 0]
    assert got.pop("trace") == got.pop("share memory") == "Operation not permitted"
    assert got.pop("work in a thread") == "works"
    assert set(got.values()) <= {"OSError", "PermissionError", "ValueError"}, got


def test_w11_an_opener_and_its_program_reach_the_volumes_and_nothing_else(confined):
    got = confined("opener")
    assert got.pop("dump core") == [[0, 0], 0]
    assert got.pop("trace") == got.pop("share memory") == "Operation not permitted"
    assert got.pop("work in a thread") == "works"
    assert isinstance(got.pop("be two"), int), "it has a program to start"
    assert (got.pop("run a program"), got.pop("run a program that is two")) == ("alone\n", "")
    assert (got.pop("read its own"), got.pop("run its program")) == ("bytes", "bytes")
    assert got.pop("run its program on a secret") == ""
    assert set(got.values()) <= {"OSError", "PermissionError", "ValueError"}, got


async def test_w11_no_terminal_reaches_the_parsers(tmp_path):
    """A process that holds the terminal it was started from can type into it."""
    ours, terminal = pty.openpty()
    script = (
        "import asyncio, fcntl, os, sys, termios\n"
        "fcntl.ioctl(0, termios.TIOCSCTTY, 0)\n"
        "from worker.archives.nursery import Nursery\n"
        "async def go():\n"
        "    async with Nursery() as nursery:\n"
        "        await nursery.warm()\n"
        "        pid = nursery._process.pid\n"
        "        held = [os.readlink(f'/proc/{pid}/fd/{each}') for each in os.listdir(f'/proc/{pid}/fd')]\n"
        "        os.write(int(sys.argv[1]), repr([os.getsid(pid) == pid, [name for name in held if 'pts' in name]]).encode())\n"
        "asyncio.run(go())\n"
    )
    told, tell = os.pipe()
    process = subprocess.Popen(
        [sys.executable, "-c", script, str(tell)],
        stdin=terminal, stdout=terminal, stderr=terminal, start_new_session=True, pass_fds=[tell],
        env={"PYTHONPATH": str(_ROOT)},
    )  # fmt: skip
    os.close(tell)
    os.close(terminal)
    assert await asyncio.to_thread(process.wait) == 0
    assert os.read(told, 4096) == b"[True, []]"
    os.close(told)
    os.close(ours)


async def test_what_a_parser_says_goes_into_the_log_and_not_to_a_terminal(capfd):
    with structlog.testing.capture_logs() as logged:
        async with Nursery() as nursery:
            await nursery.warm()
            with Path(f"/proc/{nursery._process.pid}/fd/2").open("wb", buffering=0) as said:
                said.write(b"\x1b]0;x\x07" * 100 + b"\n" + b"more\n" * 100)
    words = [line["words"] for line in logged if line["event"] == "archives.parser_said"]
    assert 2 <= len(words) <= 50
    assert max(map(len, words)) <= 300
    assert "".join(capfd.readouterr()) == ""


async def test_a_parser_that_does_not_start_is_quoted(monkeypatch):
    from worker.archives import nursery as module  # noqa: PLC0415 - its constant is replaced
    from worker.errors import RetryableError  # noqa: PLC0415

    monkeypatch.setattr(module, "_START", "raise SystemExit('no such module')")
    async with Nursery() as nursery:
        with pytest.raises(RetryableError, match="it is tried again; it says: no such module"):
            await nursery.warm()


async def test_what_is_in_force_can_be_asked():
    async with Nursery() as nursery:
        found = await nursery.confinement()
    assert found.kept[0] == "limits"
    if landlock.version():
        assert "no file" in found.kept


@pytest.mark.parametrize("table", [SOCKETS, OTHER_PROCESSES, SHARED, FILES, PRIVILEGES, PROGRAMS, FORKS])
def test_every_refused_call_has_its_number_on_every_architecture(table):
    for name, numbers in table.items():
        assert len(numbers) == len({column for _, column in MACHINES.values()}), name
        assert all(number == NONE or 0 <= number < 1000 for number in numbers), name
    for column in {column for _, column in MACHINES.values()}:
        known = [numbers[column] for numbers in table.values() if numbers[column] != NONE]
        assert len(set(known)) == len(known)
