"""A process that has the parsers imported, and forks per request the process that they are forked from.

A request says nothing; with it come that process's control socket and its stdout.
"""

import os
import signal
import socket
import sys
import traceback

from forking import become_alone, serve

from worker.archives import nursery_process, thumbnail


def _run(_ask: dict, descriptors: list[int]) -> None:
    code = 1
    try:
        control, words = descriptors
        nothing = os.open(os.devnull, os.O_RDONLY)
        become_alone([nothing, words, words], kept=control)
        os.setsid()
        nursery_process.main(control)
        code = 0
    except BaseException:  # noqa: BLE001 - what goes wrong is for the worker to read
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        os._exit(code)


signal.signal(signal.SIGINT, signal.SIG_IGN)
# What each of them would load first. The rest of their preparations stops the collection of garbage: that is theirs.
thumbnail.preload()
serve(socket.socket(fileno=int(sys.argv[1])), _run)
