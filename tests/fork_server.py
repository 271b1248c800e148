"""A process that has everything imported and forks a command per request: a run of the tests is hundreds of them.

A request is {"program": …, "argv": […], "env": {…}, "cwd": path, "terminal": bool}, with the command's stdin, stdout
and stderr.
"""

import contextlib
import fcntl
import functools
import importlib
import os
import signal
import socket
import sys
import termios
import traceback

from forked_parsers import parser_server
from forking import become_alone, serve
from sqlalchemy.dialects.postgresql import asyncpg  # noqa: F401 - every command would load it with its first engine

# The point of it all: imported once.
import worker.sandbox.__main__
from worker import faults
from worker.archives import nursery
from worker.cli.main import COMMANDS, main
from worker.sandbox.wire import rsa_key

for _name in COMMANDS:
    importlib.import_module(f"worker.cli.{_name}")

PROGRAMS = {"worker": main, "sandbox": worker.sandbox.__main__.main}
nursery.start_process = parser_server().start_process
# Finding primes takes longer than all the rest of a server's start.
rsa_key.new_key = functools.cache(rsa_key.new_key)
rsa_key.new_key()


def _become(ask: dict, streams: list[int]) -> None:
    """Be as a process that was just started with this environment and these streams."""
    become_alone(streams, kept=parser_server().fileno())
    signal.signal(signal.SIGINT, signal.default_int_handler)
    if ask["terminal"]:
        os.setsid()
        fcntl.ioctl(0, termios.TIOCSCTTY, 0)
    sys.stdin = sys.__stdin__ = open(0, encoding="utf-8", closefd=False)  # noqa: SIM115 - open for good
    sys.stdout = sys.__stdout__ = _writer(1, "strict")
    sys.stderr = sys.__stderr__ = _writer(2, "backslashreplace")
    os.chdir(ask["cwd"])
    os.environ.clear()
    os.environ.update(ask["env"])
    sys.argv = [ask["program"], *ask["argv"]]
    faults._plan = faults._parse(ask["env"].get("WORKER_FAULTS", ""))


def _writer(number: int, errors: str):
    by_line = number == 2 or os.isatty(number)
    return open(number, "w", 1 if by_line else -1, encoding="utf-8", errors=errors, closefd=False)


def _run(ask: dict, streams: list[int]) -> None:
    code = 1
    try:
        _become(ask, streams)
        code = PROGRAMS[ask["program"]]() or 0
    except SystemExit as end:
        code = int(end.code or 0)
    except BaseException:  # noqa: BLE001 - whatever a command raises belongs into its output
        traceback.print_exc()
    finally:
        # Whoever read it may be gone.
        with contextlib.suppress(OSError):
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(code)


serve(socket.socket(fileno=int(sys.argv[1])), _run)
