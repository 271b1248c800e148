"""Coding the markers of what is sent: each for the channel, the sender and the document it stands under."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from worker.config.secret_key import marker_keys
from worker.domain.marker import with_code
from worker.domain.marker_code import Under, code_of
from worker.errors import RefusedError
from worker.log import get_logger
from worker.pipeline.posting import MIME
from worker.store.channels import names_senders
from worker.telegram.input_media import make_document

if TYPE_CHECKING:
    from worker.domain.telegram import ChannelRef, Document, UploadedFile
    from worker.pipeline.deps import Deps
    from worker.store.uploads import Intent

log = get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Marking:
    """How this account's messages in one channel are marked."""

    key: bytes
    channel: int
    sender: int

    def caption(self, planned: str, document_id: int | None) -> str:
        """The caption as it is sent with this document; None: it becomes one only by being sent."""
        under = Under(self.channel, self.sender, document_id or 0)
        return with_code(planned, lambda marker: code_of(self.key, marker, under))


async def marking_for(deps: Deps, intent: Intent, channel: ChannelRef) -> Marking:
    """How the messages of this intent are marked."""
    sender = 0
    if await names_senders(deps.database, intent.destination_id):
        assert deps.account.telegram_user_id is not None, "a connected account knows who it is"
        sender = deps.account.telegram_user_id
    return Marking(marker_keys(deps.settings)[0], channel.telegram_id, sender)


async def known_before_sent(deps: Deps, channel: ChannelRef, file: UploadedFile) -> UploadedFile | Document:
    """The document that the saved bytes become, so that the marker can name it.

    A server that makes none of what nobody sees yet takes the bytes with the message; its marker then vouches
    for the words alone.
    """
    try:
        document = await make_document(deps.gateway, channel, file, MIME)
    except RefusedError as error:
        log.info("part.not_stored_before", reason=str(error))
        return file
    return document or file
