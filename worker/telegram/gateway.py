"""The calls the fleet makes, in its own words. One gateway is one account."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any

from pyrogram import raw

from worker.errors import OutcomeUnknownError, RetryableError, SourceGoneError
from worker.telegram.connections import Connections, TransferBounds
from worker.telegram.convert import sent_message, to_me, to_message
from worker.telegram.dialogs import read_channels
from worker.telegram.doubts import KeyDoubts
from worker.telegram.fingerprints import HashService
from worker.telegram.input_media import input_media
from worker.telegram.permission import method_of
from worker.telegram.reading import page_above
from worker.telegram.storage import MemoryStorage, OtherKeys
from worker.telegram.tether import LOOSE, Tether

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from worker.domain.telegram import ChannelInfo, ChannelRef, Document, Me, Message, UploadedFile
    from worker.telegram.client import Server
    from worker.telegram.permission import Permission

PAGE = 100
_BOUNDS = TransferBounds()


def _nothing() -> None:
    """Nobody waits for updates."""


class Gateway:
    """A connected account. Every call is made once and has a deadline."""

    def __init__(
        self,
        server: Server,
        *,
        permission: Permission,
        deadline: float,
        dc_id: int | None = None,
        auth_key: bytes | None = None,
        other_keys: OtherKeys | None = None,
        on_update: Callable[[], None] = _nothing,
        tether: Tether = LOOSE,
        bounds: TransferBounds = _BOUNDS,
        doubts: KeyDoubts | None = None,
    ) -> None:
        self._server = server
        self.permission = permission
        self.hash_service = HashService()
        # Told the chat when a write leaves, which may be long after it was asked for.
        self.on_write: list[Callable[[int], None]] = []
        # When the account came into each channel, by the latest answer that spoke of it.
        self._member_since: dict[int, int] = {}
        self._storage = MemoryStorage(dc_id=dc_id, auth_key=auth_key, other_keys=other_keys)
        self.connections = Connections(
            server,
            self._storage,
            deadline=deadline,
            on_update=on_update,
            tether=tether,
            bounds=bounds,
            doubts=doubts or KeyDoubts(),
        )

    def under(self, permission: Permission) -> Gateway:
        """The same connections, for calls that another permission is asked for."""
        other = copy.copy(self)
        other.permission = permission
        return other

    async def connect(self) -> None:
        """Open the main connection; a fresh account agrees on a key first."""
        await self.connections.open()

    async def close(self) -> None:
        """Close every connection."""
        await self.connections.close()

    def abort(self) -> None:
        """Cut every connection now; nothing is sent any more."""
        self.connections.abort()

    @property
    def session(self) -> tuple[int, bytes]:
        """Data centre and key: what has to be kept to stay logged in."""
        return self._storage.main_dc, self._storage.main_key

    @property
    def home_dc(self) -> int:
        """The data centre that uploads go to."""
        return self._storage.main_dc

    def member_since(self, channel: ChannelRef) -> int | None:
        """When the account came into the channel, as Telegram has said last; None if it has not.

        Every answer that tells of a channel tells this too: whoever was shut out and let in again between two
        calls finds it out from the second.
        """
        return self._member_since.get(channel.telegram_id)

    async def me(self) -> Me:
        """Who this account is, and whether it is Premium now."""
        answer = await self._call(raw.functions.users.GetFullUser(id=raw.types.InputUserSelf()))
        return to_me(next(user for user in answer.users if user.id == answer.full_user.id))

    async def channels(self) -> list[ChannelInfo]:
        """The channels and supergroups among this account's dialogs, archived ones too."""
        return await read_channels(self)

    async def page_after(self, channel: ChannelRef, message_id: int) -> list[Message | int]:
        """The next messages above ``message_id``, oldest first; a bare id stands for a service message."""
        # A negative add_offset turns the page upward: it begins right above offset_id.
        answer = await self._call(
            raw.functions.messages.GetHistory(
                peer=_peer(channel),
                offset_id=message_id + 1,
                offset_date=0,
                add_offset=-PAGE,
                limit=PAGE,
                max_id=0,
                min_id=message_id,
                hash=0,
            ),
            channel,
        )
        return page_above(message_id, answer)

    async def newest_message_id(self, channel: ChannelRef) -> int:
        """The id of the channel's newest message; 0 if there is none.

        Asked of the dialog: a flood wait on reading histories must not hold up publishing.
        """
        peer = raw.types.InputDialogPeer(peer=_peer(channel))
        answer = await self._call(raw.functions.messages.GetPeerDialogs(peers=[peer]), channel)
        return int(answer.dialogs[0].top_message) if answer.dialogs else 0

    async def messages(self, channel: ChannelRef, ids: Sequence[int]) -> dict[int, Message]:
        """Those of these messages that exist."""
        answer = await self._call(
            raw.functions.channels.GetMessages(
                channel=_channel(channel),
                id=[raw.types.InputMessageID(id=number) for number in ids],
            ),
            channel,
        )
        found = (to_message(message) for message in answer.messages)
        return {message.message_id: message for message in found if message is not None}

    async def look_up(self, channel: ChannelRef, ids: Sequence[int]) -> dict[int, Message | None]:
        """Those of these ids that hold something; None stands for a service message."""
        answer = await self._call(
            raw.functions.channels.GetMessages(
                channel=_channel(channel), id=[raw.types.InputMessageID(id=number) for number in ids]
            ),
            channel,
        )
        held = (message for message in answer.messages if not isinstance(message, raw.types.MessageEmpty))
        return {int(message.id): to_message(message) for message in held}

    async def document(self, channel: ChannelRef, message_id: int, document_id: int) -> Document:
        """The file of a message with a fresh reference; fails if the message no longer carries that file."""
        found = (await self.messages(channel, [message_id])).get(message_id)
        if found is None or found.document is None:
            raise SourceGoneError(
                f"message {message_id} is gone from its channel", remedy="nothing can be done"
            )
        if found.document.document_id != document_id:
            raise SourceGoneError(f"message {message_id} carries another file by now", remedy="scan again")
        return found.document

    async def send_document(
        self,
        channel: ChannelRef,
        file: UploadedFile | Document,
        *,
        caption: str,
        random_id: int,
        mime_type: str,
    ) -> Message:
        """Post a file that was uploaded, or one that exists already and keeps its own name and type.

        The same ``random_id`` never makes a second message.
        """
        updates = await self._write(
            raw.functions.messages.SendMedia(
                peer=_peer(channel),
                media=input_media(file, mime_type),
                message=caption,
                random_id=random_id,
                silent=True,
            ),
            channel,
        )
        message = sent_message(updates, random_id)
        if message is None:
            raise OutcomeUnknownError("messages.SendMedia: the answer does not name the message")
        return message

    async def send_text(self, channel: ChannelRef, text: str, random_id: int) -> int:
        """Post a message of plain text. The same ``random_id`` never makes a second one."""
        query = raw.functions.messages.SendMessage(
            peer=_peer(channel), message=text, random_id=random_id, no_webpage=True
        )
        message = sent_message(await self._write(query, channel), random_id)
        if message is None:
            raise OutcomeUnknownError("messages.SendMessage: the answer does not name the message")
        return message.message_id

    async def edit_text(self, channel: ChannelRef, message_id: int, text: str) -> None:
        """Replace the text of one of this account's messages."""
        query = raw.functions.messages.EditMessage(
            peer=_peer(channel), id=message_id, message=text, no_webpage=True
        )
        await self._write(query, channel)

    async def delete_messages(self, channel: ChannelRef, ids: Sequence[int]) -> None:
        """Delete messages for everybody; those that are gone already do not matter."""
        await self._write(
            raw.functions.channels.DeleteMessages(channel=_channel(channel), id=list(ids)), channel
        )

    async def read(self, query: Any, channel: ChannelRef | None = None) -> Any:
        """A call that nobody sees, for the modules that have a subject of their own."""
        return await self._call(query, channel)

    async def ask(self, query: Any) -> Any:
        """A call that nobody sees, and that is not answered twice in the same way.

        ``OutcomeUnknownError`` if its answer is lost: whoever asks has to find out before asking again.
        """
        return await self.permission.read(method_of(query), 0, lambda: self.connections.call(query))

    async def _call(self, query: Any, channel: ChannelRef | None = None) -> Any:
        """A call that changes nothing anybody sees: it may be repeated."""

        async def once() -> Any:
            try:
                answer = await self.connections.call(query)
            except OutcomeUnknownError as error:
                raise RetryableError(error.what) from error
            self._notice_memberships(answer)
            return answer

        return await self.permission.read(method_of(query), channel.telegram_id if channel else 0, once)

    def _notice_memberships(self, answer: Any) -> None:
        for chat in getattr(answer, "chats", ()):
            if isinstance(chat, raw.types.Channel) and not (chat.min or chat.left):
                # Answers may come out of order. Nobody comes in earlier than before.
                known = self._member_since.get(chat.id, 0)
                self._member_since[chat.id] = max(known, chat.date)

    async def _write(self, query: Any, channel: ChannelRef) -> Any:
        """A call that people see: made once, whatever becomes of it."""

        async def leave() -> Any:
            for tell in self.on_write:
                tell(channel.telegram_id)
            return await self.connections.call(query, visible=True)

        return await self.permission.write(method_of(query), channel.telegram_id, leave)


def _peer(channel: ChannelRef) -> Any:
    return raw.types.InputPeerChannel(channel_id=channel.telegram_id, access_hash=channel.access_hash)


def _channel(channel: ChannelRef) -> Any:
    return raw.types.InputChannel(channel_id=channel.telegram_id, access_hash=channel.access_hash)
