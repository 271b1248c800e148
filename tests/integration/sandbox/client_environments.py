"""Virtual environments of stock clients. Each has its own: two of them share the import name ``pyrogram``."""

import fcntl
import os
import subprocess
import sys
from pathlib import Path

import platformdirs
import pytest

REQUIREMENTS = {
    "telethon": ("telethon==1.45", "cryptg"),
    "kurigram": ("kurigram==2.2.26", "tgcrypto"),
    "pyrogram": ("pyrogram==2.0.106", "tgcrypto"),
}


def python_of(name: str) -> str:
    """Return the interpreter that has this client, installing it on first use (about ten seconds).

    ``SANDBOX_CLIENT_VENVS`` names the folder to use; without it they are kept in the user's cache.
    """
    folder = os.environ.get("SANDBOX_CLIENT_VENVS")
    base = Path(folder) if folder else platformdirs.user_cache_path("archive-fleet") / "client-venvs"
    base.mkdir(parents=True, exist_ok=True)
    home, ready = base / name, base / name / ".ready"
    # Test processes that start together make it once.
    with (base / f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not ready.exists():
            _install(home, REQUIREMENTS[name])
            ready.touch()
    return str(home / "bin" / "python")


def _install(home: Path, requirements: tuple[str, ...]) -> None:
    steps = [
        [sys.executable, "-m", "venv", "--clear", str(home)],
        [str(home / "bin" / "python"), "-m", "pip", "install", "--quiet", *requirements],
    ]
    for step in steps:
        done = subprocess.run(step, capture_output=True, text=True, timeout=110, check=False)
        if done.returncode:
            pytest.fail(
                f"{' '.join(requirements)} could not be installed; is a package index reachable? "
                f"Point SANDBOX_CLIENT_VENVS at a folder that has it.\n{done.stderr[-1000:]}"
            )
