"""What may be asked of an account, by name."""

from __future__ import annotations

from typing import TYPE_CHECKING

from worker.recovery.restore import restore

if TYPE_CHECKING:
    from worker.recovery.errand import Executor

EXECUTORS: dict[str, Executor] = {
    "restore": restore,
}
