"""The process that parser children are forked from.

It is started once, imports every parser, and holds no secret, no connection and no thread, so a fork is
cheap and safe. For each channel that arrives over its control socket it forks one child, tells the other end
how the child ended, and kills the child when the other end hangs up.
"""

from __future__ import annotations

import codecs
import contextlib
import gc
import os
import select
import signal
import socket

import psutil

from worker.archives import child, thumbnail, wire

EXIT_FAILED = 70


def main(control_fd: int) -> None:
    """Serve until the control socket is closed."""
    control = socket.socket(fileno=control_fd)
    _preload()
    nursery = _Nursery(control)
    try:
        control.send(b"+")
    except OSError:
        # Whoever wanted parsers has ended meanwhile.
        return
    nursery.serve()


def _preload() -> None:
    # A confined child can open no file, so nothing may be left to import: codecs load on first use, and py7zr
    # imports psutil on its first extraction.
    for codec in ("cp437", "utf-16-le", "latin-1", "utf-8", "ascii", "cp1252"):
        codecs.lookup(codec)
    psutil.virtual_memory()
    thumbnail.preload()
    child.preload()
    # A child lives for one archive and its memory is bounded: collecting garbage would only cost it time.
    gc.collect()
    gc.freeze()
    gc.disable()


class _Nursery:
    def __init__(self, control: socket.socket) -> None:
        self._control = control
        self._channels: dict[int, socket.socket] = {}  # by child
        self._children: dict[int, int] = {}  # by channel descriptor
        self._poll = select.poll()
        self._wake_read, self._wake_write = os.pipe()
        for fd in (self._wake_read, self._wake_write):
            os.set_blocking(fd, False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        signal.set_wakeup_fd(self._wake_write)

    def serve(self) -> None:
        self._poll.register(self._control, select.POLLIN)
        self._poll.register(self._wake_read, select.POLLIN)
        while True:
            for fd, _ in self._poll.poll():
                if fd == self._control.fileno():
                    if not self._accept():
                        return
                elif fd == self._wake_read:
                    self._drain()
                elif fd in self._children:
                    self._hung_up(fd)
            self._reap()

    def _accept(self) -> bool:
        message, fds = b"", list[int]()
        # A parent that was killed with something unread resets the connection instead of closing it.
        with contextlib.suppress(ConnectionResetError):
            message, fds, _, _ = socket.recv_fds(self._control, 1, 1)
        if not message:
            for pid in self._channels:
                os.kill(pid, signal.SIGKILL)
            return False
        channel = socket.socket(fileno=fds[0])
        pid = os.fork()
        if pid == 0:
            self._become_child(channel)
        self._channels[pid] = channel
        self._children[channel.fileno()] = pid
        self._poll.register(channel, 0)  # asks for nothing, so only a hang-up is reported
        return True

    def _become_child(self, channel: socket.socket) -> None:
        status = EXIT_FAILED
        try:
            signal.set_wakeup_fd(-1)
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            for other in (self._control, *self._channels.values()):
                other.close()
            os.close(self._wake_read)
            os.close(self._wake_write)
            child.run_job(channel)
            status = 0
        except EOFError:
            status = 0
        finally:
            # Whatever went wrong, a child must never go on as a second nursery.
            os._exit(status)

    def _hung_up(self, fd: int) -> None:
        self._poll.unregister(fd)
        os.kill(self._children[fd], signal.SIGKILL)

    def _drain(self) -> None:
        with contextlib.suppress(BlockingIOError):
            os.read(self._wake_read, 4096)

    def _reap(self) -> None:
        while self._channels:
            pid, status = os.waitpid(-1, os.WNOHANG)
            if pid == 0:
                return
            channel = self._channels.pop(pid)
            fd = channel.fileno()
            del self._children[fd]
            with contextlib.suppress(KeyError):
                self._poll.unregister(fd)
            channel.setblocking(False)
            with contextlib.suppress(OSError):  # the other end may have hung up or be full: it sees the end
                wire.send(channel, wire.Frame.STATUS, wire.STATUS.pack(os.waitstatus_to_exitcode(status)))
            channel.close()
