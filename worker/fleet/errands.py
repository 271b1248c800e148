"""What may be asked of an account, by name."""

from __future__ import annotations

from typing import TYPE_CHECKING

from worker.fleet.channel_errands import discover, join
from worker.recovery.account import recover_as_asked
from worker.recovery.rebuild import rebuild
from worker.recovery.restore import restore
from worker.recovery.verify import verify

if TYPE_CHECKING:
    from worker.recovery.errand import Executor

EXECUTORS: dict[str, Executor] = {
    "discover": discover,
    "join": join,
    "rebuild": rebuild,
    "recover": recover_as_asked,
    "restore": restore,
    "verify": verify,
}
