"""What a person gives up, and no account is there to take back: ended all the same, and named."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from worker.recovery.abandonment import end_unseen
from worker.recovery.findings import Kind
from worker.store.given_up import could_look, state_of
from worker.store.locks import LockSession

if TYPE_CHECKING:
    from collections.abc import Sequence

    from worker.fleet.process import Process
    from worker.recovery.findings import Findings
    from worker.store.open_intents import Begun


async def end_the_rest(process: Process, given_up: Sequence[Begun], findings: Findings) -> None:
    """End those of these uploads that are still open, unless an account can look at their destination."""
    for begun in given_up:
        state = await state_of(process.database, begun.upload_id)
        if state == "open":
            findings.note(Kind.UPLOAD, begun.set_name, await _end(process, begun))
        elif state == "done":
            findings.note(Kind.UPLOAD, begun.set_name, "published: it was finished before that")


async def _end(process: Process, begun: Begun) -> str:
    lookers = await could_look(process.database, begun.upload_id)
    if lookers:
        return f"decided: account {lookers[0]} takes back what was sent, in its next round"
    locks = await LockSession.open(
        process.database.address, answer_within=process.settings.lease.lease_secs / 2
    )
    try:
        calls_end = partial(process.clock.sleep, process.settings.telegram.call_timeout_secs)
        return await end_unseen(process.database, process.silence, locks, process.worker_id, begun, calls_end)
    finally:
        await locks.close()
