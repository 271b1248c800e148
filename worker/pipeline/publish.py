"""Sending a set's parts to the destination: the intent first, then the bytes or a copy, then the messages."""

from __future__ import annotations

import os
import secrets
from itertools import accumulate
from typing import TYPE_CHECKING

from worker.domain.clean_name import clean_file_name
from worker.domain.marker import Marker
from worker.domain.split_plan import OriginalFile, split_plan
from worker.domain.telegram import Document
from worker.errors import (
    NoAccessError,
    NotBeforeError,
    OutcomeUnknownError,
    PartMissingError,
    ReferenceExpiredError,
    RefusedError,
    RetryableError,
    SentBeforeError,
)
from worker.pipeline.copying import copy_part
from worker.pipeline.marking import known_before_sent, marking_for
from worker.pipeline.posting import Posting, post
from worker.store.channels import channel_ref
from worker.store.destinations import destination_of, require_room
from worker.store.uploads import (
    IntentPart,
    create_intent,
    find_committed,
    mark_sending,
    mark_sent,
    mark_unsent,
    reload,
)
from worker.telegram.transfer import Upload

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator, Sequence
    from pathlib import Path

    from worker.domain.telegram import ChannelRef, Message, UploadedFile
    from worker.pipeline.deps import Deps
    from worker.pipeline.marking import Marking
    from worker.store.sets import Claim
    from worker.store.uploads import Intent, UploadPart

_MOST_LOST_PARTS = 50


async def intend(deps: Deps, claim: Claim, content_hash: bytes) -> Intent:
    """Commit what is about to be sent where, with ids that are made this once."""
    most = deps.settings.fleet.destination_messages
    destination = await destination_of(deps.database, deps.account.id, most_messages=most)
    if destination.channel_id not in deps.looked_through:
        # Another one was chosen while the set was fetched.
        what = f"{destination.title} is looked through before anything is published there"
        raise NotBeforeError(what, seconds=deps.settings.fleet.busy_retry_secs)
    floor = await deps.gateway.newest_message_id(destination.ref)
    await require_room(deps.database, destination, floor, most_messages=most)
    parts = list(_plan(claim, content_hash, deps.upload_limit))
    try:
        return await create_intent(
            deps.database,
            claim,
            account_id=deps.account.id,
            destination_id=destination.channel_id,
            floor_id=floor,
            content_hash=content_hash,
            parts=parts,
        )
    except OutcomeUnknownError:
        committed = await find_committed(deps.database, claim, parts)
        if committed is None:
            raise
        return committed


def _plan(claim: Claim, content_hash: bytes, limit: int) -> Iterator[IntentPart]:
    files = [OriginalFile(clean_file_name(part.file_name), part.size) for part in claim.parts]
    starts = list(accumulate((file.size for file in files), initial=0))
    for ordinal, part in enumerate(split_plan(files, limit).parts):
        source = claim.parts[part.file_index]
        offset = starts[part.file_index] + part.offset
        marker = Marker(
            content_hash=content_hash,
            total_size=claim.total_size,
            offset=offset,
            length=part.length,
            file_index=part.file_index,
            file_size=source.size,
            file_name=source.file_name,
            source_channel=claim.source_telegram_id,
            source_message=source.message_id,
            source_document=source.document_id,
        )
        yield IntentPart(ordinal, part.name, offset, part.length, secrets.randbits(63), marker.line())


async def send_parts(
    deps: Deps,
    claim: Claim,
    intent: Intent,
    files: Sequence[Path],
    nearly_done: Callable[[], None] = lambda: None,
) -> Intent:
    """Send every part that is not sent yet, in order. The intent as it stands after the last one.

    ``nearly_done`` is called when few bytes are left to be sent.
    """
    channel = await channel_ref(deps.database, deps.account.id, intent.destination_id)
    content = _Content(files, nearly_done)
    marking = await marking_for(deps, intent, channel)
    for part in intent.parts:
        if part.state != "sent":
            await _send_part(deps, claim, intent, part, channel, marking, content)
    return await reload(deps.database, intent)


async def _send_part(
    deps: Deps,
    claim: Claim,
    intent: Intent,
    part: UploadPart,
    channel: ChannelRef,
    marking: Marking,
    content: _Content,
) -> None:
    async def send(file: UploadedFile | Document) -> Message:
        return await _post(deps, intent, part.plan, channel, marking, file)

    async def send_uploaded(file: UploadedFile) -> Message:
        return await send(await known_before_sent(deps, channel, file))

    message = await copy_part(deps, claim, part, send)
    if message is None:
        message = await _upload_part(deps, claim, part.plan, content, send_uploaded)
    document_id = message.document.document_id if message.document else None
    await mark_sent(
        deps.database, intent, part.plan.ordinal, message_id=message.message_id, document_id=document_id
    )


async def _upload_part(
    deps: Deps,
    claim: Claim,
    part: IntentPart,
    content: _Content,
    send: Callable[[UploadedFile], Awaitable[Message]],
) -> Message:
    done = part.offset

    def moved(count: int) -> None:
        nonlocal done
        # A part that is sent once more is no progress.
        done = min(done + count, part.offset + part.length)
        deps.watcher.bytes_moved(claim.name, "upload", done, claim.total_size)

    upload = Upload(
        deps.gateway,
        name=part.file_name,
        size=part.length,
        fill=lambda offset, buffer: content.fill(part.offset + offset, buffer),
        moved=moved,
        nearly_done=lambda: content.nearly_sent(part.offset + part.length),
    )
    await upload.run()
    for _ in range(_MOST_LOST_PARTS):
        try:
            return await send(upload.file)
        except PartMissingError as lost:
            # The server wants these bytes again first.
            await upload.save_again(lost.part)
        except ReferenceExpiredError:
            # It waited for its turn for hours; the bytes are there, and become a document once more.
            continue
    raise RetryableError(f"{part.file_name}: the server keeps losing its parts")


async def _post(
    deps: Deps,
    intent: Intent,
    part: IntentPart,
    channel: ChannelRef,
    marking: Marking,
    file: UploadedFile | Document,
) -> Message:
    attempts: list[bool] = []
    document_id = file.document_id if isinstance(file, Document) else None

    async def begin() -> None:
        attempts.append(await mark_sending(deps.database, intent, part.ordinal, document_id))

    posting = Posting(channel, file, marking.caption(part.caption, document_id), begin)
    try:
        return await post(deps.outbox, deps.transport, deps.account.id, posting, part.random_id)
    except (NoAccessError, NotBeforeError, PartMissingError, RefusedError):
        # Told to wait, or refused, so this attempt made no message: were the account's limit to change, this
        # part may be cut anew. An attempt before it may have made one.
        if attempts == [True]:
            await mark_unsent(deps.database, intent, part.ordinal)
        raise
    except SentBeforeError as error:
        end_it = f"worker recover --give-up {intent.set_id}"
        remedy = f"it is looked for at every try; if somebody has deleted it, run: {end_it}"
        raise SentBeforeError(error.what, remedy=remedy) from error


class _Content:
    """The files of a set as one run of bytes. ``nearly_done`` is called when little of it is left."""

    def __init__(self, files: Sequence[Path], nearly_done: Callable[[], None]) -> None:
        self._files = [(path, path.stat().st_size) for path in files]
        self._nearly_done = nearly_done

    def nearly_sent(self, offset: int) -> None:
        """Little is left of what lies before ``offset``."""
        if offset >= sum(size for _, size in self._files):
            self._nearly_done()

    def fill(self, offset: int, buffer: memoryview) -> None:
        """Put the bytes from ``offset`` on into the buffer."""
        for path, size in self._files:
            piece = buffer[: max(0, size - offset)]
            if piece and offset < size:
                with path.open("rb", buffering=0) as file:
                    read = os.preadv(file.fileno(), [piece], offset)
                if read != len(piece):
                    raise RetryableError(f"{path.name} has lost bytes on the disk")
                buffer, offset = buffer[read:], size
            offset -= size
        if buffer:
            raise RetryableError("the files on the disk end before the upload does")
