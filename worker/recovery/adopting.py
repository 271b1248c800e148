"""Going through a destination's messages, and making packages of what is ours and no row knows.

Pages are taken as they come; only contents that are not complete are held. Nothing is deleted: what looks
doubled may be a person's own copy. A message that says what cannot be is left out and named.
"""

from __future__ import annotations

import contextlib
import hashlib
from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING, Protocol

from worker.domain.marked_set import Gathering, LeftAside, MarkedMessage, MarkedSet, marked_message
from worker.domain.package_content import StoredPart
from worker.domain.telegram import Message
from worker.errors import BusyError, FleetError, SetFailedError
from worker.log import get_logger
from worker.pipeline.deduplicate import only_publisher
from worker.pipeline.sight import SightChangedError
from worker.recovery.restore import part_bytes
from worker.store import adoption
from worker.store.packages import package_with
from worker.store.uploads import live_intent_for
from worker.store.watermarks import Begun, begin_look, note_looked

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from worker.domain.origin import Authority
    from worker.domain.telegram import ChannelRef
    from worker.pipeline.deps import Deps

log = get_logger(__name__)
# What a report of messages names at most; `worker verify` lists the rest.
MOST_NAMED = 20
# How often is written down how far a long look is: about twice a minute at Telegram's pace.
_PAGES_KEPT = 20


class Outcome(Enum):
    """What became of messages that no row knew."""

    ADOPTED = "adopted"
    TO_BE_ADOPTED = "to be adopted"
    BEGUN = "left to the upload that sent it"
    DOUBLED = "doubled"
    INCOMPLETE = "incomplete"
    LATER = "looked at later"
    MEANWHILE = "known meanwhile"
    UNFIT = "left out"
    OLD = "marked without a code"
    NOT_OURS = "not ours"


class Told(Protocol):
    """Whoever is told what became of which messages."""

    def tell(self, outcome: Outcome, name: str, messages: Sequence[int], why: str) -> None:
        """These messages, sent under this name, came to this."""
        ...


@dataclass(slots=True)
class Adopting:
    """One pass over one destination, which counts messages; from ``held_back`` on they are not settled."""

    deps: Deps
    channel_id: int
    authority: Authority
    told: Told
    dry_run: bool = False
    trust_old: bool = False
    messages: int = 0
    marked: int = 0
    known: int = 0
    held_back: int | None = None
    _gathering: Gathering = field(default_factory=Gathering)
    # What stands there of packages that were withdrawn. As long as they lack messages, that is known; and
    # what is left of one set of messages is not mixed with the next.
    _of_withdrawn: Gathering = field(default_factory=Gathering)

    async def take(self, page: Sequence[Message | int]) -> None:
        """Settle what is complete with this page; its messages are newer than those of all pages before."""
        found = [
            (item, marked)
            for item in page
            if isinstance(item, Message)
            and (marked := marked_message(item, self.authority, trust_old=self.trust_old)) is not None
        ]
        self.messages += len(page)
        self.marked += len(found)
        ids = [marked.message_id for _, marked in found]
        recorded = await adoption.recorded_messages(self.deps.database, self.channel_id, ids) if ids else {}
        self.known += sum(not is_withdrawn for is_withdrawn in recorded.values())
        unknown = [(item, marked) for item, marked in found if recorded.get(marked.message_id, True)]
        copied = await self._copied(unknown)
        for item, marked in unknown:
            if isinstance(marked, LeftAside):
                outcome = Outcome.OLD if marked.is_old else Outcome.NOT_OURS
                self.told.tell(outcome, marked.name, [marked.message_id], marked.why)
            elif marked.message_id not in recorded and not item.is_ours and marked.document_id in copied:
                why = f"it shows the document of message {copied[marked.document_id]} once more"
                self.told.tell(Outcome.NOT_OURS, marked.file_name, [marked.message_id], why)
            elif marked.message_id in recorded:
                if isinstance(found_again := self._of_withdrawn.add(marked), MarkedSet):
                    await self._settle(found_again)
            else:
                await self._gather(marked)
        for incomplete in self._gathering.overflow():
            await self._settle(incomplete)
        for _ in self._of_withdrawn.overflow():
            continue

    async def end(self) -> None:
        """There is nothing newer: what is open is not complete."""
        for incomplete in self._gathering.rest():
            await self._settle(incomplete)
        for _ in self._of_withdrawn.rest():
            continue

    def settled_to(self, cursor: int) -> int:
        """The message up to which nothing is left open, with everything up to ``cursor`` taken."""
        waiting = (self._gathering.oldest, self._of_withdrawn.oldest, self.held_back)
        return min([cursor, *(number - 1 for number in waiting if number is not None)])

    async def _copied(self, unknown: Sequence[tuple[Message, MarkedMessage | LeftAside]]) -> dict[int, int]:
        """Documents of withdrawn packages, where they stand in the channel's own name, and in which message.

        Whoever may post there in its name can show such a document again, with all its words.
        """
        documents = [
            marked.document_id
            for item, marked in unknown
            if isinstance(marked, MarkedMessage) and item.sender_id == 0
        ]
        if not documents:
            return {}
        return await adoption.withdrawn_documents(self.deps.database, self.channel_id, documents)

    async def _gather(self, message: MarkedMessage) -> None:
        match self._gathering.add(message):
            case MarkedSet() as found:
                await self._settle(found)
            case MarkedMessage():
                why = "an older message holds the same bytes"
                self.told.tell(Outcome.DOUBLED, message.file_name, [message.message_id], why)

    async def _settle(self, found: MarkedSet) -> None:
        ids = found.message_ids
        try:
            await self._decide(found, ids)
        except FleetError:
            raise
        except Exception as bug:
            # One content that meets a bug must not keep the account from all the others.
            log.exception("content.broke", messages=ids)
            self.told.tell(Outcome.UNFIT, found.name, ids, f"internal error: {bug!r}; please report this")

    async def _decide(self, found: MarkedSet, ids: Sequence[int]) -> None:
        async with self.deps.database.reading() as connection:
            is_known = await package_with(connection, found.content_hash) is not None
            is_begun = await live_intent_for(connection, found.content_hash) is not None
        if is_begun:
            self.told.tell(Outcome.BEGUN, found.name, ids, "")
        elif is_known:
            self.told.tell(Outcome.DOUBLED, found.name, ids, "its content is published by other messages")
        elif not found.is_complete:
            have = f"{found.total_size - found.missing_bytes} of {found.total_size} bytes are there"
            self.told.tell(Outcome.INCOMPLETE, found.name, ids, have)
        elif self.dry_run:
            why = "" if found.is_proven else "once its bytes have been read and hashed"
            self.told.tell(Outcome.TO_BE_ADOPTED, found.name, ids, why)
        else:
            await self._adopt(found, ids)

    async def _adopt(self, found: MarkedSet, ids: Sequence[int]) -> None:
        try:
            if not found.is_proven and not await self._is_what_it_says(found):
                why = "its bytes have another hash than its marker says"
                self.told.tell(Outcome.NOT_OURS, found.name, ids, why)
                return
            async with only_publisher(self.deps, found.content_hash):
                package_id = await adoption.adopt_package(self.deps.database, found, self.channel_id)
        except BusyError as error:
            self.held_back = min(self.held_back or ids[0], ids[0])
            self.told.tell(Outcome.LATER, found.name, ids, error.what)
            return
        except SetFailedError as error:
            self.told.tell(Outcome.UNFIT, found.name, ids, error.what)
            return
        if package_id is None:
            self.told.tell(Outcome.MEANWHILE, found.name, ids, "")
            return
        log.warning("package.adopted", package=package_id, parts=len(found.parts))
        self.told.tell(Outcome.ADOPTED, found.name, ids, f"package {package_id}")

    async def _is_what_it_says(self, found: MarkedSet) -> bool:
        digest = hashlib.sha256()
        for part in found.parts:
            stored = StoredPart(
                self.channel_id,
                part.message_id,
                part.document_id,
                part.file_name,
                part.marker.offset,
                part.marker.length,
            )
            async with contextlib.aclosing(part_bytes(self.deps, stored)) as pieces:
                async for data in pieces:
                    digest.update(data)
        return digest.digest() == found.content_hash


async def go_through(
    adopting: Adopting,
    ref: ChannelRef,
    above: int | None,
    progress: Callable[[int, int], None],
    is_stopping: Callable[[], bool] = lambda: False,
) -> int | None:
    """Take every message above this one; the id of the last one, or None if it was stopped on the way.

    ``above`` None goes on where a look was broken off, or begins above all that the database knows. What is
    adopted is newer than what is still to be looked at: that is written down before the first of it.
    """
    database, channel_id = adopting.deps.database, adopting.channel_id
    newest = await adopting.deps.gateway.newest_message_id(ref)
    begun = Begun(0, 0) if adopting.dry_run else await begin_look(database, channel_id)
    cursor, kept, pages = begun.above if above is None else above, begun.above, 0
    since = adopting.deps.gateway.member_since(ref)
    while page := await adopting.deps.gateway.page_after(ref, cursor):
        if is_stopping():
            return None
        await adopting.take(page)
        last = page[-1]
        cursor = last.message_id if isinstance(last, Message) else last
        progress(cursor, max(newest, cursor))
        pages += 1
        if pages % _PAGES_KEPT == 0 and not adopting.dry_run and adopting.settled_to(cursor) > kept:
            kept = adopting.settled_to(cursor)
            _require_same_membership(adopting.deps, ref, since)
            await note_looked(database, channel_id, kept, is_through=False)
    _require_same_membership(adopting.deps, ref, since)
    await adopting.end()
    if not adopting.dry_run:
        is_through = adopting.held_back is None
        # Whatever an account does not see was posted before the look began, deleted or not.
        settled = max(cursor, begun.hidden_to) if is_through else adopting.settled_to(cursor)
        await note_looked(database, channel_id, settled, is_through=is_through)
    return cursor


def _require_same_membership(deps: Deps, ref: ChannelRef, since: int | None) -> None:
    """Stop if the account was shut out and let in again on the way: what it was not shown is not settled."""
    if deps.gateway.member_since(ref) != since:
        raise SightChangedError(f"account {deps.account.id} was shut out of the destination and let in again")
