"""Comparing a destination with the database, both ways. Nothing is changed.

Every package's messages have to be there with the right file and marker; every marked message of ours has to
belong to a package, or to an upload that is under way. Other people's marked messages are named, and nothing
has to be put right about them. Reading the bytes themselves is left to those who ask for it.
"""

from __future__ import annotations

import contextlib
import hashlib
from collections import Counter
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

from worker.domain.marked_set import LeftAside, MarkedMessage, marked_message
from worker.domain.marker import find_marker
from worker.domain.telegram import Message
from worker.errors import SetFailedError
from worker.recovery.authority import authority_in
from worker.recovery.restore import part_bytes
from worker.recovery.sight import require_whole_history
from worker.store.channels import channel_ref
from worker.store.verification import accounted_for, contents_in, unknown_among

if TYPE_CHECKING:
    from collections.abc import Sequence

    from worker.domain.origin import Authority
    from worker.domain.package_content import PackageContent, StoredPart
    from worker.domain.telegram import ChannelRef
    from worker.recovery.errand import Errand

# The answer to one call of messages by their ids.
_MESSAGES = 100
# A destination that was emptied has as many findings as packages; a person needs to see some, and the count.
_SHOWN = 1000


@dataclass(frozen=True, slots=True)
class Finding:
    """Something that is not as it should be."""

    kind: str
    what: str
    message: int | None = None
    package: int | None = None
    name: str = ""


@dataclass(slots=True)
class Findings:
    """What was looked at, and what was found."""

    packages: int = 0
    messages: int = 0
    marked: int = 0
    bytes_read: int = 0
    counts: Counter[str] = field(default_factory=Counter)
    listed: list[Finding] = field(default_factory=list)
    not_ours: list[Finding] = field(default_factory=list)
    not_ours_count: int = 0

    def leave_aside(self, item: LeftAside) -> None:
        """A marked message of somebody else, or of which nobody can say whose it is."""
        self.not_ours_count += 1
        if len(self.not_ours) < _SHOWN:
            self.not_ours.append(Finding("not ours", item.why, item.message_id, name=item.name))

    def add(self, finding: Finding) -> None:
        self.counts[finding.kind] += 1
        if len(self.listed) < _SHOWN:
            self.listed.append(finding)

    def document(self) -> dict[str, Any]:
        """For whoever asked."""
        return {
            "packages": self.packages,
            "messages": self.messages,
            "marked": self.marked,
            "bytes_read": self.bytes_read,
            "counts": dict(self.counts),
            "findings": [asdict(finding) for finding in self.listed],
            "not_ours": [asdict(finding) for finding in self.not_ours],
            "not_ours_count": self.not_ours_count,
        }


async def verify(errand: Errand) -> dict[str, Any]:
    """Check channel ``channel`` against the database; ``sample`` packages only, and ``full`` with bytes."""
    channel_id = int(errand.arguments["channel"])
    sample = errand.arguments.get("sample")
    ref = await channel_ref(errand.deps.database, errand.deps.account.id, channel_id)
    await require_whole_history(errand.deps, channel_id, ref)
    check = _Check(errand, channel_id, ref, await authority_in(errand.deps, ref))
    await check.packages(sample, full=bool(errand.arguments.get("full")))
    await check.markers(sample)
    return check.findings.document()


class _Check:
    def __init__(self, errand: Errand, channel_id: int, ref: ChannelRef, authority: Authority) -> None:
        self._errand = errand
        self._deps = errand.deps
        self._channel_id = channel_id
        self._ref = ref
        self._authority = authority
        self.findings = Findings()

    async def packages(self, sample: int | None, *, full: bool) -> None:
        """From the database to the destination."""
        total = int(self._errand.arguments.get("packages", 0))
        async for contents in contents_in(self._deps.database, self._channel_id, sample=sample):
            await self._messages_of(contents)
            for content in contents:
                self.findings.packages += 1
                if not content.is_whole:
                    self._found("broken", "its parts do not make up its files", content)
                elif full:
                    await self._read(content)
                self._errand.counter.progress("packages", self.findings.packages, min(total, sample or total))

    async def _messages_of(self, contents: Sequence[PackageContent]) -> None:
        parts = [(content, part) for content in contents for part in content.parts]
        for start in range(0, len(parts), _MESSAGES):
            batch = parts[start : start + _MESSAGES]
            found = await self._deps.gateway.messages(self._ref, [part.message_id for _, part in batch])
            self.findings.messages += len(batch)
            for content, part in batch:
                wrong = _what_is_wrong(content, part, found.get(part.message_id))
                if wrong is not None:
                    kind, what = wrong
                    self._found(kind, what, content, part)

    async def _read(self, content: PackageContent) -> None:
        digest = hashlib.sha256()
        try:
            for part in content.parts:
                async with contextlib.aclosing(part_bytes(self._deps, part)) as pieces:
                    async for data in pieces:
                        digest.update(data)
                        self.findings.bytes_read += len(data)
        except SetFailedError as error:
            self._found("unreadable", error.what, content)
            return
        if digest.digest() != content.content_hash:
            self._found("corrupt", "its bytes have another hash", content)

    def _found(self, kind: str, what: str, content: PackageContent, part: StoredPart | None = None) -> None:
        message = part.message_id if part else None
        self.findings.add(Finding(kind, what, message, content.package_id, content.name))

    async def markers(self, sample: int | None) -> None:
        """From the destination to the database; of a sample's size, the newest messages only."""
        newest = await self._deps.gateway.newest_message_id(self._ref)
        cursor = 0 if sample is None else max(0, newest - sample)
        doubtful: dict[int, MarkedMessage] = {}
        while page := await self._deps.gateway.page_after(self._ref, cursor):
            doubtful.update(await self._doubtful_in(page))
            if len(doubtful) >= _SHOWN:
                await self._judge(doubtful)
                doubtful = {}
            last = page[-1]
            cursor = last.message_id if isinstance(last, Message) else last
            self._errand.counter.progress("messages", cursor, newest)
        await self._judge(doubtful)

    async def _doubtful_in(self, page: Sequence[Message | int]) -> dict[int, MarkedMessage]:
        marked = {
            item.message_id: marked
            for item in page
            if isinstance(item, Message) and (marked := marked_message(item, self._authority)) is not None
        }
        self.findings.marked += len(marked)
        doubtful = {}
        for message_id in sorted(await unknown_among(self._deps.database, self._channel_id, marked)):
            match marked[message_id]:
                case LeftAside() as aside:
                    self.findings.leave_aside(aside)
                case MarkedMessage() as message:
                    doubtful[message_id] = message
        return doubtful

    async def _judge(self, doubtful: dict[int, MarkedMessage]) -> None:
        """A second look: what was being sent a moment ago has its package by now."""
        hashes = {message.marker.content_hash for message in doubtful.values()}
        under_way, published = await accounted_for(self._deps.database, hashes)
        for message_id in sorted(await unknown_among(self._deps.database, self._channel_id, doubtful)):
            marker = doubtful[message_id].marker
            if marker.content_hash in under_way:
                continue
            doubled = marker.content_hash in published
            kind = "doubled" if doubled else "unknown"
            what = "its content is published by other messages" if doubled else "no package knows it"
            self.findings.add(Finding(kind, what, message_id, name=marker.file_name))


def _what_is_wrong(
    content: PackageContent, part: StoredPart, message: Message | None
) -> tuple[str, str] | None:
    if message is None:
        return "missing", "its message is gone"
    if message.document is None or message.document.size != part.length:
        return "changed", "its message carries another file"
    if part.document_id is not None and message.document.document_id != part.document_id:
        return "changed", "its message carries another file of that size"
    marker = find_marker(message.text)
    if marker is None:
        return "unmarked", "its message has lost its marker"
    window = (marker.content_hash, marker.total_size, marker.offset, marker.length)
    if window != (content.content_hash, content.size, part.offset, part.length):
        return "changed", "the marker of its message names other bytes"
    return None
