"""Where the demo lives: its folder, its log, and the settings under which every command works there."""

from __future__ import annotations

import contextlib
import fcntl
from pathlib import Path
from typing import TYPE_CHECKING

from worker.config.load import Loaded, given, load
from worker.config.own_file import require_own_folder
from worker.demo.telegram import whereabouts
from worker.errors import UserError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import TextIO

# Telegram's limits, scaled down with the archives.
STANDARD_MIB, PREMIUM_MIB = 2, 4
# Where `make demo` keeps it, seen from the repository.
_MADE_HERE = Path(".worker") / "demo"
_LOG_BYTES = 2**20


def demo_folder(named: Path | None) -> Path:
    """The folder that was named, else the one below the working folder, else the one in the data folder."""
    if named is None and _MADE_HERE.is_dir():
        # In a folder that everybody writes to, somebody else may have laid it there, with links in it.
        for each in (_MADE_HERE.parent, _MADE_HERE):
            require_own_folder(each)
        named = _MADE_HERE
    elif named is None:
        named = load().settings.data_dir / "demo"
    return named.absolute()


def is_usual(folder: Path) -> bool:
    """Whether it is the one that is taken where none is named."""
    try:
        return demo_folder(None) == folder
    except UserError:
        return False


def notes_file(folder: Path) -> Path:
    """What was posted where; it is there once the stage is set."""
    return folder / "stage.json"


def demo_settings(folder: Path) -> Loaded:
    """Settings that point at the loopback Telegram and look again sooner than real ones would."""
    telegram = whereabouts(folder)
    document = {
        "data_dir": folder,
        "telegram": {
            "api_id": 1,
            "api_hash": "0" * 32,
            "host": telegram.host,
            "port": telegram.port,
            "public_key": telegram.public_key,
        },
        "transfer": {"standard_limit_mib": STANDARD_MIB, "premium_limit_mib": PREMIUM_MIB},
        # Shorter than the demo lasts: whatever made a set wait, it is tried again before the end.
        "fleet": {"busy_retry_secs": 0.5, "busy_cap_secs": 5, "retry_base_secs": 2, "retry_cap_secs": 10},
        "rate_limits": {"profile": "relaxed"},
    }
    return given(document, "the demo")


@contextlib.contextmanager
def sole_demo(folder: Path) -> Iterator[None]:
    """Be the only one who sets this stage and judges it; other commands may work there meanwhile."""
    with (folder / "demo.lock").open("ab") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise UserError(
                f"another demo is running in {folder}", remedy="wait for it, or name another --state"
            ) from None
        yield


def log_file(folder: Path) -> Path:
    """Where everything that works in this world writes its log."""
    return folder / "demo.log"


@contextlib.contextmanager
def opened_log(folder: Path) -> Iterator[TextIO]:
    """The log to append to; a long one is put aside first, in the place of the one before."""
    path = log_file(folder)
    if path.exists() and path.stat().st_size > _LOG_BYTES:
        path.replace(path.with_suffix(".log.1"))
    with path.open("a", encoding="utf-8") as stream:
        yield stream
