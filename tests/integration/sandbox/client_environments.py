"""Virtual environments of stock clients. Each has its own: two of them share the import name ``pyrogram``."""

import fcntl
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import platformdirs
import pytest

# The client, and the cipher in C that it does without where there is none.
REQUIREMENTS = {
    "telethon": ("telethon==1.45", "cryptg"),
    "kurigram": ("kurigram==2.2.26", "tgcrypto"),
    "pyrogram": ("pyrogram==2.0.106", "tgcrypto"),
}
SLOW = "slow"


@dataclass(frozen=True)
class StockClient:
    """An interpreter that has a client, and whether that client's cipher is a fast one."""

    python: str
    fast: bool


def stock_client(name: str) -> StockClient:
    """Return this client, installing it on first use (about ten seconds).

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
            ready.write_text("" if _install(home, *REQUIREMENTS[name]) else SLOW)
    return StockClient(str(home / "bin" / "python"), ready.read_text() != SLOW)


def _install(home: Path, client: str, cipher: str) -> bool:
    """Whether there is a wheel of the cipher, or a compiler to make it."""
    pip = [str(home / "bin" / "python"), "-m", "pip", "install", "--quiet"]
    for step in ([sys.executable, "-m", "venv", "--clear", str(home)], [*pip, client]):
        done = _run(step)
        if done.returncode:
            pytest.fail(
                f"{client} could not be installed; is a package index reachable? "
                f"Point SANDBOX_CLIENT_VENVS at a folder that has it.\n{done.stderr[-1000:]}"
            )
    wheels = [] if shutil.which("cc") else ["--only-binary=:all:"]
    return _run([*pip, *wheels, cipher]).returncode == 0


def _run(step: list[str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(step, capture_output=True, text=True, timeout=110, check=False)
