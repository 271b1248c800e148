"""Minimal Debian systems: made once by debootstrap, kept as a tar, unpacked for each run, and entered.

Whatever is mounted, ``enclosed.sh`` mounts in a namespace of its own, which the kernel takes down together with all that runs in
it. So nothing of this host can be mounted in a tree when the tree is removed, however a run ends.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import IO

ROOT = Path(__file__).parents[2]
CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "archive-fleet" / "bare"
TOOLS = ("debootstrap", "unshare", "setpriv", "tar", "git")
# It dies with this process, and everything in its namespace dies with it.
APART = ("setpriv", "--pdeathsig", "KILL", "unshare", "--mount", "--pid", "--fork", "--kill-child")
PERSON = "person"
HOME = Path("/home", PERSON)
CLONE = HOME / "archive-fleet"
# Beside Python, what everybody has who can clone the repository and type make.
EVERYWHERE = ("make", "git", "ca-certificates")
# This host's way to the network, whatever it is.
NETWORK_FILES = ("/etc/resolv.conf", "/etc/hosts", "/etc/pip.conf", "/etc/ssl/certs/ca-certificates.crt")
NETWORK_VARIABLES = re.compile(
    r"PIP_.*|(https?|all|no)_proxy|SSL_CERT_(FILE|DIR)|REQUESTS_CA_BUNDLE", re.IGNORECASE
)


@dataclass(frozen=True)
class System:
    """A Debian, and the packages that bring its Python."""

    suite: str
    python: tuple[str, ...] = ("python3", "python3-venv")


SYSTEMS = {
    "bookworm": System("bookworm"),
    "trixie": System("trixie"),
    "sid": System("sid"),
    # Not this suite's own Python, and no other beside it.
    "sid-python3.15": System("sid", ("python3.15", "python3.15-venv")),
}


def kept_system(name: str, log: Path, *, fresh: bool) -> Path:
    """The tar of a system, made at its first use."""
    kept, system, tree = CACHE / f"{name}.tar", SYSTEMS[name], CACHE / "making"
    if kept.exists() and not fresh:
        return kept
    print(f"   making the system, which takes minutes; see {log}", flush=True)
    _remove(tree)
    packages = ",".join(system.python + EVERYWHERE)
    mirror = [os.environ["DEBIAN_MIRROR"]] if "DEBIAN_MIRROR" in os.environ else []
    with log.open("w") as output:
        for command in (
            [
                *APART,
                "debootstrap",
                "--variant=minbase",
                f"--include={packages}",
                system.suite,
                tree,
                *mirror,
            ],
            ["chroot", tree, "useradd", "--create-home", "--shell", "/bin/bash", PERSON],
            ["tar", "-C", tree, "-cf", f"{kept}.part", "."],
        ):
            subprocess.run(command, stdout=output, stderr=subprocess.STDOUT, check=True)
    Path(f"{kept}.part").rename(kept)
    _remove(tree)
    return kept


@contextlib.contextmanager
def unpacked(kept: Path) -> Iterator[Path]:
    """A copy of the system, with a clone of HEAD and this host's way to the network in it."""
    tree = CACHE / "running"
    _remove(tree)
    tree.mkdir()
    try:
        subprocess.run(["tar", "-C", tree, "-xf", kept], check=True)
        for path in filter(os.path.isfile, NETWORK_FILES):
            shutil.copyfile(path, tree / path[1:])
        for path in filter(
            Path.is_file, (Path.home() / ".config/pip/pip.conf", Path.home() / ".pip/pip.conf")
        ):
            copy = tree / HOME.relative_to("/") / path.relative_to(Path.home())
            copy.parent.mkdir(parents=True)
            shutil.copyfile(path, copy)
        clone = ["git", "-c", "safe.directory=*", "clone", "--quiet", "--no-hardlinks", ROOT]
        subprocess.run([*clone, tree / CLONE.relative_to("/")], check=True)
        subprocess.run(["chroot", tree, "chown", "-R", f"{PERSON}:", HOME], check=True)
        yield tree
    finally:
        _remove(tree)


def run_inside(tree: Path, command: list[str], output: IO[str]) -> int:
    """Run a command as the ordinary user, and return what it ended with. Nothing that it started survives it."""
    variables = [f"{name}={value}" for name, value in os.environ.items() if NETWORK_VARIABLES.fullmatch(name)]
    entering = [*APART, Path(__file__).with_name("enclosed.sh"), tree, PERSON]
    environment = [
        "env",
        "-i",
        f"HOME={HOME}",
        f"USER={PERSON}",
        "TERM=dumb",
        "PATH=/usr/local/bin:/usr/bin:/bin",
    ]
    return subprocess.run(
        [*entering, *environment, *variables, *command],
        stdin=subprocess.DEVNULL,
        stdout=output,
        stderr=subprocess.STDOUT,
        check=False,
    ).returncode


def mounted_in(tree: Path, mountinfo: str) -> list[Path]:
    """What of the kernel's list of mounts lies in this tree."""
    points = (Path(line.split()[4].replace("\\040", " ")) for line in mountinfo.splitlines())
    return [point for point in points if point.is_relative_to(tree)]


def _remove(tree: Path) -> None:
    """Remove a tree, unless something is mounted in it: that would be emptied too, and may be this host's own."""
    mounted = mounted_in(
        tree, Path("/proc/self/mountinfo").read_text(encoding="utf-8", errors="surrogateescape")
    )
    if mounted:
        raise RuntimeError(f"{mounted[0]} is mounted in {tree}, so that is not removed")
    if tree.exists():
        shutil.rmtree(tree)
