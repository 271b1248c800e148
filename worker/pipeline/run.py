"""The order of the steps, and what becomes of a set when one of them fails."""

from __future__ import annotations

import contextlib
from functools import partial
from typing import TYPE_CHECKING

from worker.archives.reader import FileReader, Part
from worker.errors import (
    ENDS_ACCOUNTS_WORK,
    OWN_TROUBLE,
    DiskFullError,
    FenceLostError,
    FleetError,
    LeaseLostError,
    NoAccessError,
    NotBeforeError,
    NotWholeError,
    SetFailedError,
    SourceGoneError,
    UserError,
)
from worker.log import at_work, bound, get_logger
from worker.pipeline.claim import release_disk
from worker.pipeline.deduplicate import Cleared, Declined, Duplicate, deduplicate, only_publisher
from worker.pipeline.digest import digest
from worker.pipeline.fetch import Fetched, fetch
from worker.pipeline.index import counted_try, index
from worker.pipeline.known import known_package
from worker.pipeline.patience import judge
from worker.pipeline.prove_fetched import prove_fetched
from worker.pipeline.publish import intend, send_parts
from worker.pipeline.record import record
from worker.pipeline.seen_again import seen_again
from worker.pipeline.settling import settled, trouble_with
from worker.pipeline.sight import require_sight
from worker.pipeline.swapped import try_to_note_swapped
from worker.store.memberships import lost_posting, lost_reading
from worker.store.metadata import Attempt
from worker.store.sets import hand_back, mark_duplicate
from worker.store.withdrawals import decline

if TYPE_CHECKING:
    from collections.abc import Callable

    from worker.pipeline.deps import Deps
    from worker.store.sets import Claim

log = get_logger(__name__)


async def attempt(deps: Deps, claim: Claim, on_fetched: Callable[[], None] = lambda: None) -> str:
    """Work on a claimed set until it is published, a duplicate, or handed back with a reason.

    ``on_fetched`` is called when the account's line has room for the next download, or will have in a moment.
    """
    reuse = False
    with bound(set=claim.set_id, channel=claim.channel_id), at_work(f"set {claim.set_id}"):
        try:
            outcome = await _work(deps, claim, on_fetched)
        except FenceLostError as error:
            log.warning("set.lost", reason=str(error))
            outcome = "lost"
        except LeaseLostError:
            raise
        except (OSError, MemoryError) as error:
            outcome = await give_back(deps, claim, trouble_with(error))
        except FleetError as error:
            outcome = await give_back(deps, claim, error)
            if isinstance(error, SourceGoneError):
                await try_to_note_swapped(deps, claim.channel_id, claim.parts)
            # Bytes of which the set was found to be broken, or that fill the disk, are of no use.
            reuse = outcome == "waiting" and not isinstance(error, SetFailedError | DiskFullError)
            if isinstance(error, (*ENDS_ACCOUNTS_WORK, *OWN_TROUBLE)):
                raise
        finally:
            await tidy(deps, claim, reuse=reuse)
        deps.watcher.set_ended(claim.name, outcome)
        return outcome


async def _work(deps: Deps, claim: Claim, on_fetched: Callable[[], None]) -> str:
    if not claim.parts:
        # Deleted at the source while the set was published; then the package was deleted as well.
        raise SourceGoneError(f"the messages of {claim.name} are gone", remedy="post it again")
    # What would end in a wait or a duplicate is found out before the bytes are moved, not after.
    if (package_id := await known_package(deps, claim)) is not None:
        await mark_duplicate(deps.database, claim, package_id)
        return "duplicate"
    if claim.content_hash is not None:
        known = await deduplicate(deps, claim.set_id, claim.content_hash)
        if not isinstance(known, Cleared):
            return await _leave(deps, claim, known)
    _require_all_parts(claim)
    fetched = await _fetch(deps, claim, on_fetched)
    on_fetched()
    await digest(deps, claim, fetched.content_hash, [part.sha256 for part in fetched.parts])
    # One upload at a time has the whole line. The turn is waited for without the lock of the content, and
    # passed on before the last bytes have left: while they are confirmed and posted, the next set begins.
    async with (
        # A copy that comes right behind finds the package, not somebody who is busy with it.
        deps.lanes.hold(("copies", deps.account.id, fetched.content_hash)),
        deps.lanes.hold(("publish", deps.account.id)) as turn,
        only_publisher(deps, fetched.content_hash),
    ):
        verdict = await deduplicate(deps, claim.set_id, fetched.content_hash)
        if isinstance(verdict, Cleared) and (standing := await seen_again(deps, fetched.content_hash)):
            verdict = Duplicate(standing)
        if not isinstance(verdict, Cleared):
            return await _leave(deps, claim, verdict)
        await prove_fetched(deps, fetched, is_unproven=claim.is_unproven)
        package_id = await _publish(deps, claim, fetched, turn.release)
    await index_fetched(deps, package_id, fetched)
    return "published"


def _require_all_parts(claim: Claim) -> None:
    """Stop if a file has left the set since it was settled: what is left could pass for all of it."""
    if sum(part.size for part in claim.parts) != claim.total_size:
        raise SourceGoneError(f"some of the messages of {claim.name} are gone", remedy="post it again")


async def _fetch(deps: Deps, claim: Claim, nearly_done: Callable[[], None]) -> Fetched:
    try:
        return await _fetch_seen(deps, claim, nearly_done)
    except NoAccessError as error:
        # Not the set's fault: whoever else reads the channel takes it at once, with every attempt left.
        others = await lost_reading(deps.database, deps.account.id, claim.channel_id)
        what = f"account {deps.account.id} can no longer read its channel ({error.what})"
        remedy = "" if others else "no other account reads it: join it with one"
        raise NotBeforeError(what, seconds=0.0, remedy=remedy) from error


async def _fetch_seen(deps: Deps, claim: Claim, nearly_done: Callable[[], None]) -> Fetched:
    """Fetch the set; messages that this account cannot see are not gone, and left to who can see them."""
    try:
        return await fetch(deps, claim, nearly_done)
    except SourceGoneError as error:
        try:
            await require_sight(deps, claim.channel_id, [part.message_id for part in claim.parts], claim.name)
        except NoAccessError as unseen:
            remedy = "let new members see its history, or log in an account that does"
            raise NotBeforeError(unseen.what, seconds=0.0, remedy=remedy) from error
        raise


async def _publish(deps: Deps, claim: Claim, fetched: Fetched, nearly_done: Callable[[], None]) -> int:
    try:
        intent = await intend(deps, claim, fetched.content_hash)
        files = [part.path for part in fetched.parts]
        intent = await send_parts(deps, claim, intent, files, nearly_done)
    except NoAccessError as error:
        await lost_posting(deps.database, deps.account.id)
        what = f"account {deps.account.id} may no longer post at the destination ({error.what})"
        remedy = "make it an administrator of that channel"
        raise NotBeforeError(what, seconds=0.0, remedy=remedy) from error
    except UserError as error:
        # A person has to do something about the destination first: it is no fault of the set.
        wait = deps.settings.fleet.retry_base_secs
        raise NotBeforeError(error.what, seconds=wait, remedy=error.remedy) from error
    return await record(deps, claim, intent)


async def tidy(deps: Deps, claim: Claim, *, reuse: bool = False) -> None:
    """Remove the set's files, or keep them for its next attempt, and give its disk space back."""
    if reuse:
        await deps.workspace.keep(claim.set_id, claim.fence)
    else:
        await deps.workspace.remove(claim.set_id, claim.fence)
    if not deps.trust.is_trusted:
        return
    try:
        await release_disk(deps, claim)
    except FleetError as error:
        # A reservation whose claim has ended promises nothing; it is swept up later.
        log.warning("disk.not_released", reason=str(error))


async def _leave(deps: Deps, claim: Claim, verdict: Duplicate | Declined) -> str:
    """There is nothing to publish."""
    if isinstance(verdict, Duplicate):
        await mark_duplicate(deps.database, claim, verdict.package_id)
        return "duplicate"
    await decline(deps.database, claim)
    return "skipped"


async def index_fetched(deps: Deps, package_id: int, fetched: Fetched) -> None:
    """Phase two from the files that are still on the disk. A failure leaves the stub for later."""
    try:
        with contextlib.ExitStack() as opened:
            async with counted_try(deps, Attempt(package_id, is_counted=True)):
                parts = [
                    Part(part.file_name, opened.enter_context(FileReader(part.path)))
                    for part in fetched.parts
                ]
                await index(deps, package_id, parts)
    except LeaseLostError:
        raise
    except Exception as error:  # noqa: BLE001 - what is published stays published; the listing is tried again
        log.warning("package.index_failed", package=package_id, reason=str(error))


async def give_back(deps: Deps, claim: Claim, error: FleetError) -> str:
    """End the claim without a result; how long it waits and whether it counts follows from the error."""
    verdict = judge(error, claim, deps.settings.fleet)
    write = partial(
        hand_back,
        deps.database,
        claim,
        reason=str(error),
        wait_seconds=verdict.seconds,
        counts=verdict.counts,
        give_up=verdict.gives_up,
        waits=verdict.waits,
        wanting=isinstance(error, NotWholeError),
    )
    await settled(deps, write)
    if verdict.gives_up:
        log.warning("set.given_up", reason=str(error))
        deps.watcher.set_given_up(claim.name, str(error))
        return "failed"
    event = "set.waits" if isinstance(error, NotBeforeError) else "set.failed"
    log.info(event, reason=str(error), seconds=verdict.seconds)
    return "waiting"
