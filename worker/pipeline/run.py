"""The order of the steps, and what becomes of a set when one of them fails."""

from __future__ import annotations

from typing import TYPE_CHECKING

from worker.archives.reader import FileReader, Part
from worker.errors import (
    AccountUnusableError,
    FenceLostError,
    FleetError,
    LeaseLostError,
    NoAccessError,
    NotBeforeError,
    RefusedError,
    SetFailedError,
)
from worker.log import bound, get_logger
from worker.pipeline.deduplicate import Cleared, Declined, Duplicate, deduplicate, only_publisher
from worker.pipeline.digest import digest
from worker.pipeline.fetch import Fetched, fetch
from worker.pipeline.index import index
from worker.pipeline.known import known_package
from worker.pipeline.prove_fetched import prove_fetched
from worker.pipeline.publish import intend, send_parts
from worker.pipeline.record import record
from worker.store.channels import destination_of
from worker.store.sets import hand_back, mark_duplicate
from worker.store.withdrawals import decline

if TYPE_CHECKING:
    from worker.pipeline.deps import Deps
    from worker.store.sets import Claim

log = get_logger(__name__)


async def attempt(deps: Deps, claim: Claim) -> str:
    """Work on a claimed set until it is published, a duplicate, or handed back with a reason."""
    with bound(set=claim.set_id, channel=claim.channel_id):
        try:
            outcome = await _work(deps, claim)
        except FenceLostError as error:
            log.warning("set.lost", reason=str(error))
            outcome = "lost"
        except LeaseLostError:
            raise
        except FleetError as error:
            outcome = await give_back(deps, claim, error)
            if isinstance(error, AccountUnusableError):
                raise
        finally:
            await deps.workspace.remove(claim.set_id, claim.fence)
        deps.watcher.set_ended(claim.name, outcome)
        return outcome


async def _work(deps: Deps, claim: Claim) -> str:
    # What would end in a wait or a duplicate is found out before the bytes are moved, not after.
    if (package_id := await known_package(deps, claim)) is not None:
        await mark_duplicate(deps.database, claim, package_id)
        return "duplicate"
    await destination_of(deps.database, deps.account.id)
    if claim.content_hash is not None:
        known = await deduplicate(deps, claim.content_hash)
        if not isinstance(known, Cleared):
            return await _leave(deps, claim, known)
    fetched = await fetch(deps, claim)
    await digest(deps, claim, fetched.content_hash, [part.sha256 for part in fetched.parts])
    async with only_publisher(deps, fetched.content_hash):
        verdict = await deduplicate(deps, fetched.content_hash)
        if not isinstance(verdict, Cleared):
            return await _leave(deps, claim, verdict)
        await prove_fetched(deps, fetched)
        intent = await intend(deps, claim, verdict.content_hash)
        intent = await send_parts(deps, claim, intent, [part.path for part in fetched.parts])
        package_id = await record(deps, claim, intent)
    await index_fetched(deps, package_id, fetched)
    return "published"


async def _leave(deps: Deps, claim: Claim, verdict: Duplicate | Declined) -> str:
    """There is nothing to publish."""
    if isinstance(verdict, Duplicate):
        await mark_duplicate(deps.database, claim, verdict.package_id)
        return "duplicate"
    await decline(deps.database, claim)
    return "skipped"


async def index_fetched(deps: Deps, package_id: int, fetched: Fetched) -> None:
    """Phase two from the files that are still on the disk. A failure leaves the stub for later."""
    readers = [FileReader(part.path) for part in fetched.parts]
    try:
        parts = [Part(part.file_name, reader) for part, reader in zip(fetched.parts, readers, strict=True)]
        await index(deps, package_id, parts)
    except LeaseLostError:
        raise
    except Exception as error:  # noqa: BLE001 - what is published stays published; the listing is tried again
        log.warning("package.index_failed", package=package_id, reason=str(error))
    finally:
        for reader in readers:
            reader.close()


async def give_back(deps: Deps, claim: Claim, error: FleetError) -> str:
    """End the claim without a result; how long it waits and whether it counts follows from the error."""
    fleet = deps.settings.fleet
    if isinstance(error, NotBeforeError):
        await hand_back(deps.database, claim, reason=str(error), wait_seconds=error.seconds)
        log.info("set.waits", reason=str(error), seconds=error.seconds)
        return "waiting"
    # Only what the set itself is to blame for counts as an attempt: an outage must not use them up.
    counts = isinstance(error, SetFailedError | NoAccessError | RefusedError)
    wait = min(fleet.retry_cap_secs, fleet.retry_base_secs * 2 ** min(claim.attempts, 30))
    give_up = counts and claim.attempts + 1 >= fleet.max_attempts
    await hand_back(
        deps.database, claim, reason=str(error), wait_seconds=wait, counts=counts, give_up=give_up
    )
    log.warning("set.failed", reason=str(error), gave_up=give_up, retry_in=None if give_up else wait)
    if give_up:
        deps.watcher.set_given_up(claim.name, str(error))
    return "failed" if give_up else "waiting"
