"""The process that parsers are forked from."""

import select
import socket
import subprocess
import sys

from hang_guard import HANG_SECONDS

SERVE = "import sys; from worker.archives.nursery_process import main; main(int(sys.argv[1]))"


def test_a_parent_that_leaves_without_having_listened_is_no_error():
    ours, theirs = socket.socketpair()
    with theirs:
        command = [sys.executable, "-c", SERVE, str(theirs.fileno())]
        process = subprocess.Popen(command, pass_fds=[theirs.fileno()], stderr=subprocess.PIPE)
    assert select.select([ours], [], [], 60)[0], "it says that it is ready"
    ours.close()
    _, said = process.communicate(timeout=HANG_SECONDS)
    assert (process.returncode, said) == (0, b"")
