"""One process of a fleet, as far as the governor sees it: calls, as often as it may, and says what happened.

Run with the database's address and a JSON object: ``call`` (account, method, chat), ``calls``, ``answers`` (texts of
refusals, then success), ``patience``, ``rush`` (a clock that lets every sleep end at once).
"""

import asyncio
import json
import sys
import time

from worker import log
from worker.clock import SystemClock
from worker.config.settings import RateLimitSettings
from worker.domain.calls import Call
from worker.errors import NotBeforeError, RefusedError
from worker.flow.governor import Governor
from worker.flow.limits import Limits
from worker.store.database import Database
from worker.store.governor_store import GovernorStore


class RushingClock:
    """Wrong by years, and impatient."""

    def monotonic(self) -> float:
        return time.monotonic() * 1000 + 1e9

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(min(seconds, 0.005))


def say(**what) -> None:
    sys.stdout.write(json.dumps(what) + "\n")
    sys.stdout.flush()


async def main(address: str, plan: dict) -> None:
    database = Database(address)
    clock = RushingClock() if plan.get("rush") else SystemClock()
    limits = Limits.of(RateLimitSettings(**plan.get("settings", {})))
    governor = Governor(GovernorStore(database, retention_days=7), limits=limits, clock=clock)
    answers = list(plan.get("answers", []))

    async def work():
        say(started=True)
        if answers:
            raise RefusedError(answers.pop(0))

    call = Call(**plan["call"])
    say(ready=True)
    for _ in range(plan["calls"]):
        try:
            await governor.call(call, work, patience=plan.get("patience", 1e12))
        except NotBeforeError as error:
            say(not_before=error.seconds)
    say(done=True)
    await database.close()


log.configure()
asyncio.run(main(sys.argv[1], json.loads(sys.argv[2])))
