"""An sdist made of this checkout, and the wheels made of it, each once for all test processes."""

import fcntl
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[3]
_PIP = (sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check")
# Everything that is needed is installed, and nothing may be fetched.
_WHEEL = ("wheel", "--no-index", "--no-deps", "--no-build-isolation", "--no-cache-dir", "--wheel-dir")


def run(*command, cwd=Path("/"), **variables):
    """Run to success with a plain environment, and return what was printed."""
    done = subprocess.run(command, cwd=cwd, env=plain(variables), capture_output=True, text=True)
    assert done.returncode == 0, f"{command}: {done.stdout[-2000:]}{done.stderr[-2000:]}"
    return done.stdout


def plain(variables):
    """The environment without settings, and without what would lend a process the modules of the checkout."""
    strange = ("WORKER_", "PYTHON", "ARCHIVE_FLEET_", "SOURCE_DATE_EPOCH")
    return {name: value for name, value in os.environ.items() if not name.startswith(strange)} | variables


def make_sdist(folder, root=ROOT, **variables):
    run(sys.executable, "-m", "hatchling", "build", "-t", "sdist", "-d", str(folder), cwd=root, **variables)
    (sdist,) = folder.glob("*.tar.gz")
    return sdist


def make_wheel(folder, sdist, **variables):
    run(*_PIP, *_WHEEL, str(folder), str(sdist), **variables)
    (wheel,) = folder.glob("*.whl")
    return wheel


class Distributions:
    """What ``make dist`` has built if ``DIST`` names its folder; otherwise built here."""

    def __init__(self, shared: Path) -> None:
        self._shared = shared
        self._given = Path(os.environ["DIST"]) if "DIST" in os.environ else None

    @property
    def sdist(self) -> Path:
        return self._once("sdist", "*.tar.gz", make_sdist)

    @property
    def wheel(self) -> Path:
        sdist = self.sdist
        return self._once("wheel", "*.whl", lambda folder: make_wheel(folder, sdist))

    def _once(self, name, pattern, make):
        if self._given:
            (found,) = self._given.glob(pattern)
            return found
        folder = self._shared / name
        with (self._shared / f"{name}.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            return next(folder.glob(pattern), None) or make(folder)
