"""Makes stand-ins for the base images, from Debian's packages, where the official ones cannot be pulled.

They carry names of their own: nothing that is built or run later takes one for the official image unawares.
Needs root, debootstrap and a Docker engine; what debootstrap made is kept in the user's cache.
"""

import os
import platform
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

_PREFIX = "archive-fleet-stand-in"
DEBIAN = f"{_PREFIX}/debian"
SLIM = f"{_PREFIX}/python:slim"
FULL = f"{_PREFIX}/python:full"
POSTGRES = f"{_PREFIX}/postgres:18"
# Whatever is made here, in the order in which it can be removed.
ALL = (POSTGRES, FULL, SLIM, DEBIAN)
_RELEASE = "trixie"
_SOURCES = Path(__file__).parent / "stand-ins"
# How this machine reaches the package index: its own certificates and its own pip settings, if it has any.
_MACHINE = ("/etc/ssl/certs/ca-certificates.crt", "/etc/pip.conf")


class StandInError(Exception):
    """This machine cannot make them; the message says what is missing."""


def cache() -> Path:
    """Where a second run finds what a first one downloaded."""
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    folder = Path(base) / "archive-fleet" / "containers"
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def has_image(name: str) -> bool:
    return subprocess.run(["docker", "image", "inspect", name], capture_output=True).returncode == 0


def make_debian() -> None:
    """The tree that all stand-ins are made of."""
    if has_image(DEBIAN):
        return
    tree = cache() / f"debian-{_RELEASE}-{platform.machine()}.tar"
    if not tree.exists():
        _debootstrap(tree)
    path = "ENV PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
    _run("docker", "import", "--change", path, str(tree), DEBIAN)


def make_python() -> None:
    """Stand-ins for the two Python images."""
    make_debian()
    with tempfile.TemporaryDirectory() as folder:
        context = Path(folder)
        machine = context / "machine"
        machine.mkdir()
        for name in _MACHINE:
            if Path(name).exists():
                (copied := machine / name.removeprefix("/")).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(name, copied)
        _build(SLIM, "python.Dockerfile", context)
        _build(FULL, "python-build.Dockerfile", context)


def make_postgres() -> None:
    """A stand-in for the database's image."""
    make_debian()
    _build(POSTGRES, "postgres.Dockerfile", _SOURCES)


def _debootstrap(tree: Path) -> None:
    if shutil.which("debootstrap") is None or os.geteuid() != 0:
        raise StandInError("the stand-ins are made with debootstrap, by root")
    with tempfile.TemporaryDirectory(dir=cache()) as folder:
        root, packed = Path(folder) / "root", Path(folder) / "tree.tar"
        _run("debootstrap", "--variant=minbase", _RELEASE, str(root))
        _run("tar", "-C", str(root), "-cf", str(packed), ".")
        packed.rename(tree)


def _build(name: str, dockerfile: str, context: Path) -> None:
    _run("docker", "build", "--quiet", "--tag", name, "--file", str(_SOURCES / dockerfile), str(context))


def _run(*command: str) -> None:
    done = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    if done.returncode != 0:
        raise StandInError(f"{' '.join(command[:3])} failed:\n{done.stderr[-2000:]}")


def main() -> int:
    print("Making STAND-INS for the base images from Debian's packages. They are not the official images.")
    try:
        make_python()
        make_postgres()
    except StandInError as error:
        print(error, file=sys.stderr)
        return 1
    print("\n".join(ALL))
    return 0


if __name__ == "__main__":
    sys.exit(main())
