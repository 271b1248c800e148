"""What ``make bare`` makes sure of before it makes or removes anything."""

import importlib
import subprocess
import sys
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


def test_a_system_that_is_not_known_is_refused_with_those_that_are():
    done = subprocess.run([sys.executable, _FOLDER / "bare.py", "potato"], capture_output=True, text=True)
    assert done.returncode == 2
    assert "there is no potato; there are bookworm, trixie, sid, sid-python3.15" in done.stderr
