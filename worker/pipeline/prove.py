"""Asking a set's bytes whether all of it is there, before anybody may claim it.

Names only show holes. Headers show the rest: whether a volume follows, whether the parts are of one archive,
whether ``name.rar`` is a whole archive or the first volume of one. Some kilobytes of each part are read, from
where it was posted.
"""

from __future__ import annotations

import asyncio
from functools import partial
from itertools import groupby
from typing import TYPE_CHECKING

from worker.archives.reader import Part, SetBytes
from worker.domain.archive_name import recognise
from worker.domain.archive_set import Named, PostedFile, archive_set
from worker.domain.forming import stands_alone, waits_for, without_spares
from worker.domain.replacing import with_newer
from worker.errors import (
    ENDS_ACCOUNTS_WORK,
    OWN_TROUBLE,
    FleetError,
    NotBeforeError,
    ReferenceExpiredError,
    RefusedError,
    SetFailedError,
)
from worker.log import at_work, get_logger
from worker.pipeline.patience import Verdict, after_a_bug, judge
from worker.pipeline.settling import trouble_with
from worker.pipeline.sight import require_sight
from worker.pipeline.swapped import note_swapped
from worker.status.wording import duration
from worker.store import proofs
from worker.store.channels import channel_ref
from worker.store.newer_files import files_beside, replaced_by, settle_with_newer
from worker.telegram.remote_reader import RemoteReader

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from worker.domain.archive_set import ArchiveSet
    from worker.domain.listing import Completeness
    from worker.domain.telegram import Document
    from worker.pipeline.deps import Deps
    from worker.store.proofs import Unproven
    from worker.store.sets import SourcePart

log = get_logger(__name__)
# One call brings the references of so many messages.
_MOST_MESSAGES = 100
_MOST_SETS = 25
# A proof is little but waiting for some kilobytes, behind whatever else the account's line carries.
_MOST_AT_ONCE = 8
# Processes end for many reasons; so often in a row, while one set is proven alone, for that set's.
_MOST_UNENDED = 5
# A connection that breaks, an account that is lost, a database or a disk that is away, a worker that stops.
_NO_SETS_FAULT = (*ENDS_ACCOUNTS_WORK, *OWN_TROUBLE, OSError, MemoryError, asyncio.CancelledError)


def _nobody_waits() -> None:
    """What is ready is looked for afterwards."""


async def prove_some(
    deps: Deps, resting: Sequence[int] = (), found: Callable[[], None] = _nobody_waits
) -> int:
    """Prove some of the sets that wait for it; how many were looked at, 0 if none is left.

    ``found`` is called after each of them, since it may be claimed from then on.
    """
    await deps.tries.settle()
    hold = deps.settings.lease.lease_secs
    waiting = await proofs.next_to_prove(
        deps.database, deps.account.id, most=_MOST_SETS, hold=hold, resting=resting
    )
    try:
        await _prove_in_channels(deps, waiting, found)
    except _NO_SETS_FAULT:
        uncount = partial(proofs.uncount, deps.database, waiting)
        await deps.tries.give_back(uncount, at_once=deps.trust.is_trusted)
        raise
    return len(waiting)


async def _prove_in_channels(deps: Deps, waiting: Sequence[Unproven], found: Callable[[], None]) -> None:
    for channel_id, in_channel in groupby(sorted(waiting, key=_channel), key=_channel):
        unproven = list(in_channel)
        try:
            documents = await _documents(deps, channel_id, unproven)
        except FleetError as error:
            await _look_again(deps, unproven, error)
            continue
        await _prove_several(deps, unproven, documents, found)


async def _prove_several(
    deps: Deps, unproven: Sequence[Unproven], documents: Mapping[int, Document], found: Callable[[], None]
) -> None:
    room = asyncio.Semaphore(_MOST_AT_ONCE)

    async def prove(one: Unproven) -> None:
        async with room:
            await _prove_or_settle(deps, one, documents)
            found()

    try:
        async with asyncio.TaskGroup() as group:
            for one in unproven:
                group.create_task(prove(one))
    except BaseExceptionGroup as errors:
        raise errors.exceptions[0] from None


async def _prove_or_settle(deps: Deps, one: Unproven, documents: Mapping[int, Document]) -> None:
    if one.unended > _MOST_UNENDED:
        reason = f"its proof was begun {_MOST_UNENDED} times, and each time the process ended before it"
        if await proofs.give_up(deps.database, one, reason):
            log.warning("set.given_up", set=one.set_id, reason=reason)
            deps.watcher.set_given_up(one.name, reason)
        return
    try:
        with at_work(f"proof of set {one.set_id}"):
            await _prove(deps, one, documents)
    except FleetError as error:
        await _look_again(deps, [one], error)
    except (OSError, MemoryError) as error:
        await _look_again(deps, [one], trouble_with(error))
    except Exception as error:
        # A bug that one set meets must not keep the others from being proven.
        log.exception("set.proof_broke", set=one.set_id)
        verdict = after_a_bug(one, deps.settings.fleet)
        await _settle(deps, one, f"internal error: {error!r}", verdict)


def _channel(unproven: Unproven) -> int:
    return unproven.channel_id


async def _look_again(deps: Deps, unproven: Sequence[Unproven], error: FleetError) -> None:
    """What kept us from reading says nothing about the sets, unless Telegram refuses their very files."""
    if isinstance(error, ENDS_ACCOUNTS_WORK):
        raise error
    for one in unproven:
        await _settle(deps, one, str(error), _verdict(deps, one, error))
    log.warning("sets.unproven", sets=len(unproven), reason=str(error))


def _verdict(deps: Deps, unproven: Unproven, error: FleetError) -> Verdict:
    if isinstance(error, ReferenceExpiredError):
        # The reference is a moment old: that it has run out is Telegram's way of refusing the file.
        error = RefusedError(error.what)
    if isinstance(error, (RefusedError, SetFailedError, *OWN_TROUBLE)):
        return judge(error, unproven, deps.settings.fleet)
    return Verdict(
        error.seconds if isinstance(error, NotBeforeError) else deps.settings.fleet.retry_base_secs
    )


async def _settle(deps: Deps, unproven: Unproven, reason: str, verdict: Verdict) -> None:
    if not verdict.gives_up:
        await proofs.look_again(deps.database, unproven, reason, verdict.seconds, counts=verdict.counts)
    elif await proofs.give_up(deps.database, unproven, reason):
        log.warning("set.given_up", set=unproven.set_id, reason=reason)
        deps.watcher.set_given_up(unproven.name, reason)


async def _prove(deps: Deps, unproven: Unproven, documents: Mapping[int, Document]) -> None:
    absent = [part for part in unproven.parts if part.message_id not in documents]
    if absent:
        if await note_swapped(deps, unproven.channel_id, absent):
            return  # the set was formed anew with what its messages carry now
        gone = [part.message_id for part in absent]
        await require_sight(deps, unproven.channel_id, gone, unproven.name)
        await proofs.parts_are_gone(deps.database, deps.account.id, unproven, gone)
        log.info("set.parts_gone", set=unproven.set_id, messages=gone)
        return
    found = _as_set(unproven.parts)
    verdict = await _ask(deps, found, documents)
    if verdict.complete and not unproven.contents_failed:
        await proofs.settle_complete(deps.database, unproven)
        log.info("set.complete", set=unproven.set_id, name=unproven.name, parts=len(unproven.parts))
        return
    if verdict.missing:
        reason = waits_for(found, verdict.missing)
    else:
        reason = f"it is not whole: {verdict.reason or 'its contents do not match their checksums'}"
        for fewer in without_spares(found):
            if stands_alone(fewer, await _ask(deps, fewer, documents)):
                await proofs.settle_without_spares(deps.database, unproven, fewer)
                log.info("set.complete_without_spares", set=unproven.set_id, parts=len(fewer.parts))
                return
    tried = await _prove_with_newer(deps, unproven, found, documents)
    if tried is None:
        return
    if verdict.undecided and not unproven.contents_failed:
        await _wait_undecided(deps, unproven, verdict.reason)
        return
    await proofs.settle_incomplete(deps.database, unproven, reason, tried)
    log.info("set.incomplete", set=unproven.set_id, name=unproven.name, reason=reason)


async def _wait_undecided(deps: Deps, unproven: Unproven, why: str) -> None:
    patience = deps.settings.fleet.unproven_after_secs
    reason = f"{why}: if no further part comes within {duration(patience)}, it is published as unproven"
    if await proofs.settle_undecided(deps.database, unproven, reason, patience):
        log.warning("set.unproven", set=unproven.set_id, name=unproven.name, reason=why)
    else:
        log.info("set.undecided", set=unproven.set_id, name=unproven.name, reason=why)


async def _prove_with_newer(
    deps: Deps, unproven: Unproven, found: ArchiveSet, documents: Mapping[int, Document]
) -> list[int] | None:
    """Try parts that were posted again; None if the set is whole with some, else the documents of all."""
    beside = {part.message_id: part for part in await files_beside(deps.database, unproven)}
    replaced = await replaced_by(deps.database, unproven)
    ways = with_newer(found, [_posted(part) for part in beside.values()], replaced)
    wanted = {part.message_id for way in ways for part in way.parts} & beside.keys()
    tried = [part.document_id for part in beside.values()]
    if not wanted:
        return tried
    known = {**documents, **await _documents_of(deps, unproven.channel_id, [beside[id_] for id_ in wanted])}
    for way in ways:
        if any(part.message_id not in known for part in way.parts):
            continue
        if (await _ask(deps, way, known)).complete:
            if await settle_with_newer(deps.database, unproven, way, beside):
                log.info("set.complete_with_newer", set=unproven.set_id, parts=len(way.parts))
            return None
    return tried


async def _ask(deps: Deps, found: ArchiveSet, documents: Mapping[int, Document]) -> Completeness:
    parts = tuple(
        Part(part.file_name, RemoteReader(deps.gateway, documents[part.message_id])) for part in found.parts
    )
    indices = tuple(member.name.index for member in found.members)
    return await deps.nursery.prove(SetBytes(found.format, found.scheme, parts, indices))


async def _documents(deps: Deps, channel_id: int, unproven: Sequence[Unproven]) -> dict[int, Document]:
    """The sets' files by message, with fresh references; of a message that carries another file, none."""
    return await _documents_of(deps, channel_id, [part for one in unproven for part in one.parts])


async def _documents_of(deps: Deps, channel_id: int, parts: Sequence[SourcePart]) -> dict[int, Document]:
    channel = await channel_ref(deps.database, deps.account.id, channel_id)
    wanted = {part.message_id: part.document_id for part in parts}
    ids = list(wanted)
    found: dict[int, Document] = {}
    for start in range(0, len(ids), _MOST_MESSAGES):
        messages = await deps.gateway.messages(channel, ids[start : start + _MOST_MESSAGES])
        for message_id, message in messages.items():
            if message.document is not None and message.document.document_id == wanted[message_id]:
                found[message_id] = message.document
    return found


def _as_set(parts: Sequence[SourcePart]) -> ArchiveSet:
    members = []
    for part in parts:
        name = recognise(part.file_name)
        assert name is not None, "only recognised names become sets"
        members.append(Named(_posted(part), name))
    return archive_set(members)


def _posted(part: SourcePart) -> PostedFile:
    return PostedFile(part.message_id, part.document_id, part.file_name, part.size, date=0)
