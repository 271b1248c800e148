"""What ``make bare`` makes sure of before it makes or removes anything."""

import importlib
import signal
import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest

_FOLDER = Path(__file__).parents[1] / "bare"
_MOUNTS = """\
24 31 0:22 / /proc rw,nosuid - proc proc rw
25 31 0:23 / /cache/running/proc rw - proc proc rw
26 31 0:24 / /cache/running\\040too rw - tmpfs tmpfs rw
"""


@pytest.fixture
def debian_tree(monkeypatch):
    monkeypatch.syspath_prepend(_FOLDER)
    return importlib.import_module("debian_tree")


@pytest.mark.parametrize(
    ("tree", "found"),
    [
        ("/cache/running", ["/cache/running/proc"]),
        ("/cache/running too", ["/cache/running too"]),
        ("/cache/run", []),
        ("/cache/running/proc/self", []),
    ],
)
def test_what_is_mounted_in_a_tree_is_seen(debian_tree, tree, found):
    assert debian_tree.mounted_in(Path(tree), _MOUNTS) == [Path(point) for point in found]


def test_a_run_that_a_shell_has_started_in_the_background_hears_ctrl_c():
    """A shell has it ignored there. A run that is refused has come that far."""
    script = "\n".join(
        (
            "import contextlib, signal, sys",
            f"sys.path.insert(0, {str(_FOLDER)!r})",
            "sys.argv = ['bare.py', 'potato']",
            "import bare",
            "with contextlib.suppress(SystemExit): bare.main()",
            "sys.exit(signal.getsignal(signal.SIGINT) is not signal.default_int_handler)",
        )
    )
    ignored = partial(signal.signal, signal.SIGINT, signal.SIG_IGN)
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, preexec_fn=ignored)
    assert done.returncode == 0, done.stderr


def test_a_system_that_is_not_known_is_refused_with_those_that_are():
    done = subprocess.run([sys.executable, _FOLDER / "bare.py", "potato"], capture_output=True, text=True)
    assert done.returncode == 2
    assert "there is no potato; there are bookworm, trixie, sid, sid-python3.15" in done.stderr
