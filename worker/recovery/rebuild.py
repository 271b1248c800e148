"""Making the index anew from what a destination's own messages say.

The markers carry everything: which bytes each message holds, the files they were, and the documents those
came from. Messages are read in order; a content's windows are held until they are complete, and become a
package then. What is known already stays as it is, so that a rebuilding that was interrupted is simply begun
again.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

from worker.domain.marked_set import MarkedMessage, MarkedSet, marked_message, marked_sets
from worker.domain.telegram import Message
from worker.errors import BusyError
from worker.log import get_logger
from worker.pipeline.deduplicate import only_publisher
from worker.recovery.sight import require_whole_history
from worker.store.adoption import adopt_package
from worker.store.channels import channel_ref
from worker.store.verification import unknown_among

if TYPE_CHECKING:
    from collections.abc import Iterable

    from worker.pipeline.deps import Deps
    from worker.recovery.errand import Errand

log = get_logger(__name__)
# Contents whose parts lie far apart, or will never be complete; more at a time are nobody's doing.
_MOST_OPEN = 10_000
_SHOWN = 1000


@dataclass(frozen=True, slots=True)
class LeftOut:
    """Messages that became no package, and why."""

    name: str
    messages: tuple[int, ...]
    why: str


@dataclass(slots=True)
class Rebuilt:
    """What a rebuilding came to."""

    messages: int = 0
    marked: int = 0
    packages: int = 0
    known: int = 0
    left_out: list[LeftOut] = field(default_factory=list)
    left_out_count: int = 0

    def leave_out(self, messages: Iterable[MarkedMessage], why: str) -> None:
        found = sorted(messages, key=lambda message: message.message_id)
        self.left_out_count += 1
        if len(self.left_out) < _SHOWN:
            ids = tuple(message.message_id for message in found)
            self.left_out.append(LeftOut(found[0].marker.file_name, ids, why))


async def rebuild(errand: Errand) -> dict[str, Any]:
    """Write down every package that lies in channel ``channel``."""
    deps, channel_id = errand.deps, int(errand.arguments["channel"])
    ref = await channel_ref(deps.database, deps.account.id, channel_id)
    await require_whole_history(deps, channel_id, ref)
    newest = await deps.gateway.newest_message_id(ref)
    rebuilding = _Rebuilding(deps, channel_id)
    cursor = 0
    while page := await deps.gateway.page_after(ref, cursor):
        await rebuilding.take(page)
        last = page[-1]
        cursor = last.message_id if isinstance(last, Message) else last
        errand.counter.progress("messages", cursor, max(newest, cursor))
    await require_whole_history(deps, channel_id, ref)
    rebuilding.end()
    return asdict(rebuilding.rebuilt)


class _Rebuilding:
    def __init__(self, deps: Deps, channel_id: int) -> None:
        self._deps = deps
        self._channel_id = channel_id
        self._open: dict[bytes, list[MarkedMessage]] = {}
        self.rebuilt = Rebuilt()

    async def take(self, page: list[Message | int]) -> None:
        """Keep the marked messages of a page, and make packages of what is complete with them."""
        self.rebuilt.messages += len(page)
        marked = [found for item in page if (found := marked_message(item)) is not None]
        self.rebuilt.marked += len(marked)
        ids = [message.message_id for message in marked]
        unknown = await unknown_among(self._deps.database, self._channel_id, ids) if ids else set()
        self.rebuilt.known += len(marked) - len(unknown)
        for message in marked:
            if message.message_id in unknown:
                await self._take(message)
        while len(self._open) > _MOST_OPEN:
            self._give_up(next(iter(self._open)))

    async def _take(self, message: MarkedMessage) -> None:
        content_hash = message.marker.content_hash
        together = self._open.setdefault(content_hash, [])
        together.append(message)
        (found,) = marked_sets(together)
        if not found.is_complete:
            return
        del self._open[content_hash]
        try:
            async with only_publisher(self._deps, content_hash):
                package_id = await adopt_package(self._deps.database, found, self._channel_id)
        except BusyError as error:
            self.rebuilt.leave_out(together, error.what)
            return
        if package_id is None:
            self.rebuilt.leave_out(found.parts, "its content is published by other messages, or being so")
        else:
            self.rebuilt.packages += 1
            log.info("package.rebuilt", package=package_id, parts=len(found.parts))
        if found.spare:
            self.rebuilt.leave_out(found.spare, "its content is published by other messages")

    def _give_up(self, content_hash: bytes) -> None:
        together = self._open.pop(content_hash)
        (found,) = marked_sets(together)
        self.rebuilt.leave_out(together, _incomplete(found))

    def end(self) -> None:
        """Whatever is open now is not complete."""
        for content_hash in list(self._open):
            self._give_up(content_hash)


def _incomplete(found: MarkedSet) -> str:
    have = sum(part.marker.length for part in found.parts)
    return f"{have} of {found.total_size} bytes are there"
