"""A process that has everything imported and forks a command per request: a run of the tests is hundreds of them.

Takes requests on the socket that it is given: one JSON object per line, {"program": …, "argv": […], "env": {…},
"cwd": path, "terminal": bool}, with four descriptors: a socket that hears of the process, and its stdin, stdout and
stderr. That socket hears {"pid": n} first, {"stopped": true} whenever the process is stopped, and
{"exit": code} or {"signal": n} at its end. When whoever asks is gone, so is everything that was started.
"""

import contextlib
import fcntl
import gc
import importlib
import json
import os
import select
import signal
import socket
import sys
import termios
import traceback

# The point of it all: imported once. SQLAlchemy would load its dialect with the first engine of every command.
import worker.sandbox.__main__
from worker import faults
from worker.cli.main import COMMANDS, main

for _name in COMMANDS:
    importlib.import_module(f"worker.cli.{_name}")

PROGRAMS = {"worker": main, "sandbox": worker.sandbox.__main__.main}
_FIRST_OTHER_DESCRIPTOR = 3


def _become(ask: dict, streams: list[int]) -> None:
    """Be as a process that was just started with this environment and these streams."""
    signal.set_wakeup_fd(-1)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
    os.closerange(_FIRST_OTHER_DESCRIPTOR, os.sysconf("SC_OPEN_MAX"))
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


class Children:
    """The processes that were started, each with the socket that hears of it."""

    def __init__(self) -> None:
        self._listeners: dict[int, socket.socket] = {}
        self.ended: dict[socket.socket, int] = {}

    def start(self, ask: dict, descriptors: list[int]) -> None:
        pid = os.fork()
        if pid == 0:
            _run(ask, descriptors[1:])
        self._listeners[pid] = socket.socket(fileno=descriptors[0])
        for stream in descriptors[1:]:
            os.close(stream)
        self._tell(pid, {"pid": pid})

    def report(self) -> None:
        """Tell of every process that was stopped or has ended."""
        for pid in list(self._listeners):
            change = os.waitid(os.P_PID, pid, os.WEXITED | os.WSTOPPED | os.WNOHANG | os.WNOWAIT)
            if change is None:
                continue
            if change.si_code == os.CLD_STOPPED:
                self._tell(pid, {"stopped": True})
                # Told once. Whoever is killed meanwhile is no longer stopped.
                with contextlib.suppress(ChildProcessError):
                    os.waitid(os.P_PID, pid, os.WSTOPPED | os.WNOHANG)
                continue
            self._tell(pid, {"exit" if change.si_code == os.CLD_EXITED else "signal": change.si_status})
            self.ended[self._listeners.pop(pid)] = pid

    def bury(self, listener: socket.socket) -> None:
        """Forget an ended process once whoever listened knows: until then its number is nobody else's."""
        os.waitpid(self.ended.pop(listener), 0)
        listener.close()

    def kill(self) -> None:
        for pid in self._listeners:
            os.kill(pid, signal.SIGKILL)

    def _tell(self, pid: int, what: dict) -> None:
        with contextlib.suppress(OSError):
            self._listeners[pid].sendall(json.dumps(what).encode() + b"\n")


def _receive(requests: socket.socket) -> tuple[dict, list[int]] | None:
    """The next request and its descriptors; None once nobody can ask any more."""
    text, descriptors = b"", []
    while not text.endswith(b"\n"):
        received, more, _, _ = socket.recv_fds(requests, 65536, 4)
        if not received:
            return None
        text += received
        descriptors += more
    return json.loads(text), descriptors


def serve(requests: socket.socket) -> None:
    # A child that changed its state wakes the select below.
    awake, waker = socket.socketpair()
    waker.setblocking(False)
    signal.set_wakeup_fd(waker.fileno(), warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    children = Children()
    while True:
        ready, _, _ = select.select([requests, awake, *children.ended], [], [])
        for listener in [each for each in ready if each in children.ended]:
            children.bury(listener)
        if awake in ready:
            awake.recv(4096)
            children.report()
        if requests in ready:
            request = _receive(requests)
            if request is None:
                return children.kill()
            children.start(*request)


# What is imported stays for good; looking through it again would only unshare its pages.
gc.collect()
gc.freeze()
serve(socket.socket(fileno=int(sys.argv[1])))
