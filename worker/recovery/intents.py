"""Open intents: find what was sent, send what was not, and only then go on.

A message that carries an intent's marker above its floor was sent by that intent, whatever the process that
sent it lived to write down. What is missing is sent again with the same ``random_id`` by the same account, so
that a message which was applied after all is not made twice.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from worker.errors import (
    ENDS_ACCOUNTS_WORK,
    BusyError,
    DiskTroubleError,
    FenceLostError,
    FleetError,
    NoAccessError,
    NotBeforeError,
    RefusedError,
    SetFailedError,
    SourceGoneError,
    UserError,
)
from worker.log import get_logger
from worker.pipeline.claim import claim_begun, reserve_disk
from worker.pipeline.deduplicate import only_publisher
from worker.pipeline.fetch import Fetched, fetch
from worker.pipeline.publish import send_parts
from worker.pipeline.record import record
from worker.pipeline.run import give_back, index_fetched, tidy
from worker.pipeline.settling import trouble_with
from worker.pipeline.sight import look_how_far
from worker.recovery.abandonment import (
    abandon,
    destination_closed,
    find_copy,
    leave_to_others,
    require_posting,
)
from worker.recovery.findings import Findings, Kind
from worker.recovery.reconcile import look_above_floor, settle_unseen
from worker.recovery.replan import cut_anew
from worker.recovery.sight import UnseenError, require_sight_of
from worker.store import open_intents
from worker.store.channels import channel_ref
from worker.store.reach import note_no_access, reads_source

if TYPE_CHECKING:
    from worker.pipeline.deps import Deps
    from worker.store.open_intents import Begun
    from worker.store.sets import Claim
    from worker.store.uploads import Intent

log = get_logger(__name__)
# What no waiting changes, as far as anybody here can tell.
_LASTING = (SetFailedError, NoAccessError, RefusedError, UserError)
_END_IT = "worker recover --give-up"


async def finish_open_intents(deps: Deps, findings: Findings | None = None, *, at_once: bool = False) -> None:
    """End every upload that this account has begun and that need not wait, oldest first.

    ``at_once`` is for a person who asks: what was told to wait is looked at too.
    """
    findings = findings or Findings()
    await settle_unseen(deps)
    for begun in await open_intents.begun_by(deps.database, deps.account.id, at_once=at_once):
        try:
            findings.note(Kind.UPLOAD, begun.set_name, await _finish(deps, begun))
        except FenceLostError as error:
            log.info("intent.not_ours", upload=begun.upload_id, reason=str(error))
        except ENDS_ACCOUNTS_WORK:
            raise
        except FleetError as error:
            log.warning("intent.waits", upload=begun.upload_id, reason=str(error))
            findings.note(Kind.UPLOAD, begun.set_name, f"waits: {error}")


async def _finish(deps: Deps, begun: Begun) -> str:
    # The lock comes before the fence: an upload that this very process is at must not lose it.
    async with only_publisher(deps, begun.content_hash):
        intent = await open_intents.own(deps.database, begun.upload_id, deps.account.id)
        claim = await claim_begun(deps, intent.set_id)
        if claim is None:
            raise BusyError("a copy of it is being worked on", seconds=deps.settings.fleet.busy_retry_secs)
        try:
            return await _end(deps, claim, intent)
        except ENDS_ACCOUNTS_WORK:
            raise
        except FleetError as error:
            if intent.reason is None:
                _name_the_end(error, intent.set_id)
            await give_back(deps, claim, error)
            raise
        except (OSError, MemoryError) as error:
            told = trouble_with(error)
            await give_back(deps, claim, told)
            raise told from error
        except Exception as bug:
            # One upload that meets a bug must not keep the account from all the others.
            log.exception("intent.broke", upload=begun.upload_id)
            broken = SetFailedError(f"internal error: {bug!r}", remedy="please report this")
            await give_back(deps, claim, broken)
            raise broken from bug
        finally:
            await tidy(deps, claim)


def _name_the_end(error: FleetError, set_id: int) -> None:
    """Where something is left to a person, the command that can always be given is among it."""
    is_persons = isinstance(error, _LASTING) or (isinstance(error, NotBeforeError) and error.remedy)
    if is_persons and not isinstance(error, BusyError | DiskTroubleError) and _END_IT not in error.remedy:
        error.remedy = f"{error.remedy}{'; or ' if error.remedy else ''}end the upload: {_END_IT} {set_id}"


async def _end(deps: Deps, claim: Claim, intent: Intent) -> str:
    try:
        intent = await look_above_floor(deps, intent)
        await require_sight_of(deps, intent)
    except NoAccessError as error:
        return await destination_closed(deps, claim, intent, error)
    except UnseenError:
        if intent.reason is None:
            raise
        return await leave_to_others(deps, claim, intent)
    if intent.reason is not None:
        return await abandon(deps, claim, intent)
    if intent.is_sent:
        await record(deps, claim, intent)
        return "finished"
    await require_posting(deps, intent)
    intent = await _fit(deps, intent)
    try:
        fetched = await _fetch_same(deps, claim, intent)
    except (SourceGoneError, NoAccessError) as error:
        return await _without_source(deps, claim, intent, error)
    intent = await _send(deps, claim, intent, fetched)
    package_id = await record(deps, claim, intent)
    await index_fetched(deps, package_id, fetched)
    return "finished"


async def _send(deps: Deps, claim: Claim, intent: Intent, fetched: Fetched) -> Intent:
    try:
        return await send_parts(deps, claim, intent, [part.path for part in fetched.parts])
    except NoAccessError:
        await note_no_access(deps.database, deps.account.id, intent.destination_id, still_reads=True)
        await require_posting(deps, intent)
        raise
    except UserError as error:
        wait = deps.settings.fleet.retry_base_secs
        raise NotBeforeError(error.what, seconds=wait, remedy=error.remedy) from error


async def _fit(deps: Deps, intent: Intent) -> Intent:
    """Cut what does not fit the account's limit any more, as when Premium has lapsed.

    Only after the look above the floor, and only what is known to be unsent: a part that was sent after all
    and cut anew would stand at the destination twice.
    """
    limit = deps.upload_limit
    too_large = [part for part in intent.parts if part.state != "sent" and part.plan.length > limit]
    if not too_large:
        return intent
    if any(part.state != "planned" for part in too_large):
        number = too_large[0].plan.ordinal + 1
        what = f"needs a Premium account or a split: part {number} may have been sent, in one piece"
        remedy = f"run: worker recover --take-over {deps.account.id}"
        raise SetFailedError(what, remedy=remedy)
    unsent = [part.plan for part in intent.parts if part.state == "planned"]
    log.info("intent.replanned", upload=intent.upload_id, parts=len(unsent), limit=limit)
    return await open_intents.replan(deps.database, intent, cut_anew(unsent, limit))


async def _fetch_same(deps: Deps, claim: Claim, intent: Intent) -> Fetched:
    await reserve_disk(deps, claim)
    fetched = await fetch(deps, claim)
    if fetched.content_hash != intent.content_hash:
        raise SourceGoneError("the source's bytes have changed since the upload began")
    return fetched


async def _without_source(deps: Deps, claim: Claim, intent: Intent, error: FleetError) -> str:
    """The bytes cannot be had here: from a copy if there is one, otherwise the intent ends or waits."""
    copy = await find_copy(deps, intent)
    if copy is not None:
        await open_intents.move_to_copy(deps.database, intent, copy)
        log.info("intent.moved", upload=intent.upload_id, set=copy, reason=str(error))
        raise BusyError(f"{error.what}; a copy of it is used instead", seconds=0)
    if not isinstance(error, SourceGoneError):
        raise error
    source = await channel_ref(deps.database, deps.account.id, claim.channel_id)
    await look_how_far(deps, claim.channel_id, source)
    if not await reads_source(deps.database, deps.account.id, claim.set_id):
        # What an account may not see only looks gone to it.
        what = f"account {deps.account.id} does not see all of {claim.name}"
        raise NoAccessError(what, remedy=f"run: worker recover --take-over {deps.account.id}")
    intent = await open_intents.give_up(deps.database, intent, error.what)
    return await abandon(deps, claim, intent)
