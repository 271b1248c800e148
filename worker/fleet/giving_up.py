"""What a person gives up, and no account is there to take back: ended all the same, and named."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from worker.recovery.abandonment import end_unseen
from worker.recovery.findings import Kind
from worker.store.given_up import could_look, state_of
from worker.store.locks import LockSession
from worker.store.remains import could_take_back, leave_remains, remains_behind
from worker.store.removals import unsettled_behind, vouch_for_unseen

if TYPE_CHECKING:
    from collections.abc import Sequence

    from worker.fleet.process import Process
    from worker.recovery.findings import Findings
    from worker.store.open_intents import Begun
    from worker.store.remains import Remains
    from worker.store.removals import Unsure


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
    locks = await _open_locks(process)
    try:
        calls_end = partial(process.clock.sleep, process.settings.telegram.call_timeout_secs)
        return await end_unseen(process.database, process.silence, locks, process.worker_id, begun, calls_end)
    finally:
        await locks.close()


async def wait_no_longer(
    process: Process, set_ids: Sequence[int], reason: str, findings: Findings, *, dry_run: bool
) -> None:
    """Let these sets be published beside what is left of them, unless an account can take that back."""
    for set_id in set_ids:
        unsure = await unsettled_behind(process.database, set_id)
        if unsure is not None:
            told = await _vouch(process, unsure, dry_run=dry_run)
            findings.note(Kind.UPLOAD, f"what was given up of set {set_id}", told)
            continue
        remains = await remains_behind(process.database, set_id)
        if remains is not None:
            findings.note(Kind.PACKAGE, remains.name, await _leave(process, remains, reason, dry_run=dry_run))


async def _vouch(process: Process, unsure: Unsure, *, dry_run: bool) -> str:
    if unsure.lookers:
        return f"waits: account {unsure.lookers[0]} looks for it, in its next round"
    if dry_run:
        return "to be looked for no longer"
    locks = await _open_locks(process)
    try:
        if not await locks.try_content(unsure.content_hash):
            return "waits: another worker is publishing the same content, or looks for what is left of it"
        try:
            await vouch_for_unseen(process.database, unsure.content_hash)
        finally:
            await locks.release_content(unsure.content_hash)
    finally:
        await locks.close()
    return "looked for no longer: it is published beside what may be there"


async def _leave(process: Process, remains: Remains, reason: str, *, dry_run: bool) -> str:
    lookers = await could_take_back(process.database, remains)
    if lookers:
        return f"waits: account {lookers[0]} takes back what is left of it, in its next round"
    if dry_run:
        return "to be given up: what is left of it"
    locks = await _open_locks(process)
    try:
        if not await locks.try_content(remains.content_hash):
            return "waits: another worker is publishing the same content, or takes back what is left of it"
        try:
            if not await leave_remains(process.database, remains, reason):
                return "nothing is left of it"
        finally:
            await locks.release_content(remains.content_hash)
    finally:
        await locks.close()
    return "given up: it is published beside what is left of it"


async def _open_locks(process: Process) -> LockSession:
    lease = process.settings.lease.lease_secs
    return await LockSession.open(process.database.address, answer_within=lease / 2)
