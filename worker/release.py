"""Which commit this is: told by a file in a built package, and by git in a checkout.

The build reads this module by its path to write that file, so it imports nothing of ours.
"""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

# Beside this module in an sdist, a wheel and an image; never in a checkout.
FILE = "COMMIT"
UNKNOWN = "unknown commit"


def commit(package: Path = Path(__file__).parent) -> str:
    """The short commit, with ``-dirty`` if files differ from it; never fails."""
    try:
        return (package / FILE).read_text(encoding="ascii").strip()
    except FileNotFoundError:
        return _of_checkout(package.parent) or UNKNOWN


def _of_checkout(root: Path) -> str:
    # A package unpacked somewhere below a repository of another project is none of its commits.
    if not (root / ".git").exists():
        return ""
    # A hook of git's runs its commands with variables that name a repository and an index.
    env = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    describe = ("git", "-C", str(root), "describe", "--always", "--dirty", "--abbrev=7", "--exclude=*")
    try:
        # Looking must not write an index that somebody else is about to write.
        done = subprocess.run(  # noqa: S603 - our own arguments
            describe,
            env=env | {"GIT_OPTIONAL_LOCKS": "0"},
            capture_output=True,
            text=True,
            check=True,
            timeout=10,
        )
    except (OSError, subprocess.SubprocessError):
        return ""
    return done.stdout.strip()
