"""Giving the bytes of a package back, in order, out of the messages that carry them."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

from worker.errors import ReferenceExpiredError, SetFailedError, UserError
from worker.store.channels import channel_ref
from worker.store.package_content import content_of
from worker.telegram.transfer import DOWN_BYTES, download

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from worker.domain.package_content import StoredPart
    from worker.domain.telegram import Document
    from worker.pipeline.deps import Deps
    from worker.recovery.errand import Errand

_MAX_REFERENCES = 20


async def restore(errand: Errand) -> dict[str, Any]:
    """Deliver the content of package ``package`` from byte ``start`` on."""
    content = await content_of(errand.deps.database, int(errand.arguments["package"]))
    if not content.is_whole:
        raise UserError(
            f"the parts of package {content.package_id} do not make up its files", remedy="run: worker verify"
        )
    done = int(errand.arguments.get("start", 0))
    errand.counter.progress("reading", done, content.size)
    for part in content.parts:
        if part.offset + part.length > done:
            async with contextlib.aclosing(part_bytes(errand.deps, part, done - part.offset)) as pieces:
                async for data in pieces:
                    await errand.counter.deliver(data)
                    done += len(data)
                    errand.counter.progress("reading", done, content.size)
    return {"bytes": done}


async def part_bytes(deps: Deps, part: StoredPart, start: int = 0) -> AsyncGenerator[bytes, None]:
    """The bytes of one part from ``start`` on. A reference that runs out on the way is fetched anew."""
    position = start
    for _ in range(_MAX_REFERENCES):
        document = await stored_document(deps, part)
        # Ranges are asked for in whole steps; what comes before is had already.
        begin = position - position % DOWN_BYTES
        skip = position - begin
        pieces = download(
            deps.gateway, document, start=begin, in_flight=deps.settings.transfer.parts_in_flight
        )
        with contextlib.suppress(ReferenceExpiredError):
            async with contextlib.aclosing(pieces):
                async for data in pieces:
                    fresh = data[skip:]
                    skip = 0
                    position += len(fresh)
                    yield fresh
        if position == part.length:
            return
    raise SetFailedError(f"the references of message {part.message_id} keep running out", remedy="try again")


async def stored_document(deps: Deps, part: StoredPart) -> Document:
    """The file of a part with a fresh reference, if it is still the one that was sent."""
    channel = await channel_ref(deps.database, deps.account.id, part.channel_id)
    message = (await deps.gateway.messages(channel, [part.message_id])).get(part.message_id)
    document = message.document if message is not None else None
    if (
        document is None
        or document.size != part.length
        # Whoever may edit the message can put another file of that size in its place.
        or part.document_id not in (None, document.document_id)
    ):
        raise SetFailedError(
            f"message {part.message_id} at the destination does not carry its part",
            remedy="run: worker verify",
        )
    return document
