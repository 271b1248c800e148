"""Marked messages that no row knows: a complete set becomes a package, anything else is reported.

Nothing is deleted here. What looks doubled may be a person's own copy.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from worker.domain.marked_set import MarkedMessage, MarkedSet, marked_message, marked_sets
from worker.domain.telegram import Message
from worker.errors import BusyError, NoAccessError
from worker.log import get_logger
from worker.pipeline.deduplicate import only_publisher
from worker.recovery.findings import Findings, Kind
from worker.recovery.sight import Sight
from worker.store import adoption
from worker.store.packages import package_with
from worker.store.uploads import live_intent_for

if TYPE_CHECKING:
    from worker.pipeline.deps import Deps
    from worker.store.withdrawals import ReadableDestination

log = get_logger(__name__)
# More strays than this are a database that was lost; rebuilding it is another command's work.
_MOST = 10_000
# So much of a destination is read before anything new is published there: some minutes at Telegram's pace.
_PAGES_AT_START = 100


class Lookout:
    """Looks, once per account of a process, for what the destinations hold beyond all that is known.

    There is something if an older database was restored, and it would be published a second time. One account
    looks, and the others wait for that.
    """

    def __init__(self) -> None:
        self._lock = asyncio.Lock()
        self._channels: set[int] = set()
        self._accounts: set[int] = set()

    async def look(self, deps: Deps) -> None:
        if deps.account.id in self._accounts:
            return
        async with self._lock:
            await settle_strays(deps, Findings(), self._channels, Sight(deps), newest=True)
        self._accounts.add(deps.account.id)


async def settle_strays(
    deps: Deps,
    findings: Findings,
    seen: set[int],
    sight: Sight,
    *,
    dry_run: bool = False,
    newest: bool = False,
) -> None:
    """Read every destination this account can see and settle what carries a marker and has no row.

    ``seen`` are the channels that another account of this process reads or has read. ``newest`` reads only
    what is above all that the database knows.
    """
    for destination in await sight.destinations():
        if destination.channel_id in seen:
            continue
        seen.add(destination.channel_id)
        try:
            start = await adoption.newest_known(deps.database, destination.channel_id) if newest else 0
            pages = _PAGES_AT_START if newest else None
            for found in marked_sets(await _strays_in(deps, destination, start, pages)):
                await _settle(deps, findings, destination, found, dry_run=dry_run)
        except NoAccessError as error:
            seen.remove(destination.channel_id)
            findings.note(Kind.MESSAGE, destination.title, f"not read: {error.what}")
            await sight.shut_out(destination.channel_id)


async def _strays_in(
    deps: Deps, destination: ReadableDestination, cursor: int, pages: int | None
) -> list[MarkedMessage]:
    strays: list[MarkedMessage] = []
    read = 0
    while len(strays) < _MOST and (page := await deps.gateway.page_after(destination.ref, cursor)):
        if read == pages:
            remedy = "run: worker recover"
            log.warning("destination.not_read_to_its_end", channel=destination.title, remedy=remedy)
            break
        read += 1
        last = page[-1]
        cursor = last.message_id if isinstance(last, Message) else last
        marked = [found for item in page if (found := marked_message(item)) is not None]
        ids = [message.message_id for message in marked]
        known = await adoption.known_messages(deps.database, destination.channel_id, ids) if ids else set()
        strays += [message for message in marked if message.message_id not in known]
    return strays


async def _settle(
    deps: Deps, findings: Findings, destination: ReadableDestination, found: MarkedSet, *, dry_run: bool
) -> None:
    name = (found.parts or found.spare)[0].file_name
    async with deps.database.reading() as connection:
        is_known = await package_with(connection, found.content_hash) is not None
        is_begun = await live_intent_for(connection, found.content_hash) is not None
    if is_begun:
        findings.note(Kind.MESSAGE, name, "left to the upload that sent it")
    elif is_known:
        ids = [message.message_id for message in (*found.parts, *found.spare)]
        findings.note(Kind.MESSAGE, name, f"doubled: messages {ids} in {destination.title}; yours to delete")
    elif not found.is_complete:
        findings.note(Kind.MESSAGE, name, f"incomplete: {found.missing_bytes} bytes are nowhere")
    elif dry_run:
        findings.note(Kind.MESSAGE, name, "to be adopted")
    else:
        await _adopt(deps, findings, destination, found, name)


async def _adopt(
    deps: Deps, findings: Findings, destination: ReadableDestination, found: MarkedSet, name: str
) -> None:
    try:
        async with only_publisher(deps, found.content_hash):
            package_id = await adoption.adopt_package(deps.database, found, destination.channel_id)
    except BusyError as error:
        findings.note(Kind.MESSAGE, name, f"looked at later: {error.what}")
        return
    if package_id is None:
        findings.note(Kind.MESSAGE, name, "known meanwhile")
        return
    log.warning("package.adopted", package=package_id, parts=len(found.parts))
    findings.note(Kind.MESSAGE, name, f"adopted: package {package_id}")
