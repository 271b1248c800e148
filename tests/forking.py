"""What forks processes on request and tells of each how it ended: ``serve``, with a way to run a request.

Takes requests on the socket that it is given: one JSON object per line, with descriptors: a socket that hears of
the process first, the others are the process's own. That socket hears {"pid": n} first, {"stopped": true} whenever
the process is stopped, and {"exit": code} or {"signal": n} at its end. When whoever asks is gone, so is everything
that was started.
"""

import contextlib
import gc
import json
import os
import select
import signal
import socket
from collections.abc import Callable

# Runs in the process that was forked and does not return: what was asked for, and its descriptors.
Run = Callable[[dict, list[int]], None]


def become_alone(streams: list[int], kept: int) -> None:
    """Be as a process that was just started with these streams and this descriptor, and knows no other."""
    signal.set_wakeup_fd(-1)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
    os.closerange(len(streams), kept)
    os.closerange(kept + 1, os.sysconf("SC_OPEN_MAX"))


class Children:
    """The processes that were started, each with the socket that hears of it."""

    def __init__(self, run: Run) -> None:
        self._run = run
        self._listeners: dict[int, socket.socket] = {}
        self.ended: dict[socket.socket, int] = {}

    def start(self, ask: dict, descriptors: list[int]) -> None:
        pid = os.fork()
        if pid == 0:
            self._run(ask, descriptors[1:])
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


def serve(requests: socket.socket, run: Run) -> None:
    """Fork until nobody can ask any more."""
    # What is imported stays for good; looking through it again would only unshare its pages.
    gc.collect()
    gc.freeze()
    # A child that changed its state wakes the select below.
    awake, waker = socket.socketpair()
    waker.setblocking(False)
    signal.set_wakeup_fd(waker.fileno(), warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    children = Children(run)
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
