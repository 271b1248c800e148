"""The ledger's rows as TL objects, each as one account sees it."""

from __future__ import annotations

import time
from io import BytesIO
from typing import TYPE_CHECKING, Any

from pyrogram import raw
from pyrogram.raw.core import TLObject

from worker.sandbox.ledger.rows import Role
from worker.sandbox.references import own_hash
from worker.sandbox.tl import read_vector

if TYPE_CHECKING:
    from collections.abc import Iterable

    from worker.sandbox.ledger.rows import Account, Channel, Document, Member, Message
    from worker.sandbox.server import Sandbox

ADMIN_RIGHTS = {
    "change_info": True,
    "post_messages": True,
    "edit_messages": True,
    "delete_messages": True,
    "ban_users": True,
    "invite_users": True,
    "pin_messages": True,
    "manage_topics": True,
}


class View:
    """What one account sees."""

    def __init__(self, sandbox: Sandbox, viewer: Account) -> None:
        self._sandbox = sandbox
        self._ledger = sandbox.ledger
        self.viewer = viewer
        # A view serves one answer: what it looked up for one message holds for the next.
        self._channels: dict[int, Channel | None] = {}

    def _channel_of(self, box: int) -> Channel | None:
        if box not in self._channels:
            self._channels[box] = self._ledger.channels.get(box) if box > 0 else None
        return self._channels[box]

    def user(self, account: Account) -> Any:
        return raw.types.User(
            id=account.user_id,
            is_self=account.user_id == self.viewer.user_id or None,
            access_hash=own_hash(account.access_hash, self.viewer.user_id),
            first_name=account.first_name,
            last_name=account.last_name or None,
            username=account.username,
            phone=account.phone if account.user_id == self.viewer.user_id else None,
            premium=bool(account.premium) or None,
            status=raw.types.UserStatusOffline(was_online=int(time.time())),
        )

    def users(self, ids: Iterable[int]) -> list[Any]:
        accounts = (self._ledger.accounts.get(user_id) for user_id in sorted(set(ids)))
        return [self.user(account) for account in accounts if account is not None]

    def channel(self, channel: Channel) -> Any:
        member = self._ledger.channels.member(channel.channel_id, self.viewer.user_id)
        access_hash = own_hash(channel.access_hash, self.viewer.user_id)
        inside = member is not None and member.inside
        if (member and member.role is Role.KICKED) or not (inside or channel.username):
            return raw.types.ChannelForbidden(
                id=channel.channel_id,
                access_hash=access_hash,
                title=channel.title,
                broadcast=bool(channel.broadcast) or None,
                megagroup=not channel.broadcast or None,
            )
        rights = raw.types.ChatAdminRights(**ADMIN_RIGHTS) if member and member.may_administer else None
        return raw.types.Channel(
            id=channel.channel_id,
            title=channel.title,
            photo=raw.types.ChatPhotoEmpty(),
            date=member.date if member else channel.date,
            creator=(member is not None and member.role is Role.CREATOR) or None,
            left=not inside or None,
            broadcast=bool(channel.broadcast) or None,
            megagroup=not channel.broadcast or None,
            forum=bool(channel.forum) or None,
            noforwards=bool(channel.noforwards) or None,
            access_hash=access_hash,
            username=channel.username,
            admin_rights=rights,
            participants_count=self._ledger.channels.member_count(channel.channel_id),
        )

    def peer(self, message: Message) -> Any:
        if message.box > 0:
            return raw.types.PeerChannel(channel_id=message.box)
        return raw.types.PeerUser(user_id=message.peer_id)

    def message(self, message: Message) -> Any:
        """A message, or a service message if it tells of an action."""
        channel = self._channel_of(message.box)
        post = channel is not None and bool(channel.broadcast)
        shared = {
            "id": message.id,
            "peer_id": self.peer(message),
            "date": message.date,
            "out": message.from_id == self.viewer.user_id or None,
            "post": post or None,
            "from_id": None if post else raw.types.PeerUser(user_id=message.from_id),
            "reply_to": _reply_header(message, forum=channel is not None and bool(channel.forum)),
        }
        if message.action is not None:
            return raw.types.MessageService(**shared, action=TLObject.read(BytesIO(message.action)))
        return raw.types.Message(
            **shared,
            message=message.text,
            entities=read_vector(message.entities) or None,
            media=self.media(message),
            grouped_id=message.grouped_id,
            edit_date=message.edit_date,
            noforwards=bool(message.noforwards) or None,
            fwd_from=None if message.fwd_from is None else TLObject.read(BytesIO(message.fwd_from)),
            views=1 if post else None,
            forwards=0 if post else None,
        )

    def media(self, message: Message) -> Any:
        document = self._ledger.documents.get(message.document_id) if message.document_id else None
        if document is None:
            return None
        return self.document_media(document, message.box, message.id)

    def document_media(self, document: Document, box: int, message_id: int) -> Any:
        reference = self._sandbox.references.make(document.document_id, box, message_id)
        if document.kind == "photo":
            return raw.types.MessageMediaPhoto(photo=_photo(document, reference))
        return raw.types.MessageMediaDocument(
            document=_document(document, reference), video=document.kind == "video" or None
        )

    def chats_of(self, messages: Iterable[Message]) -> list[Any]:
        boxes = {message.box for message in messages if message.box > 0}
        return [self.channel(self._ledger.channels.need(box)) for box in sorted(boxes)]

    def authors_of(self, messages: Iterable[Message]) -> list[Any]:
        ids = {message.from_id for message in messages}
        return self.users(ids | {message.peer_id for message in messages if message.peer_id})

    def member(self, member: Member) -> Any:
        rights = raw.types.ChatAdminRights(**ADMIN_RIGHTS)
        if member.role is Role.CREATOR:
            return raw.types.ChannelParticipantCreator(user_id=member.user_id, admin_rights=rights)
        if member.role is Role.ADMIN:
            return raw.types.ChannelParticipantAdmin(
                user_id=member.user_id, promoted_by=member.user_id, date=member.date, admin_rights=rights
            )
        if member.role is Role.KICKED:
            return raw.types.ChannelParticipantBanned(
                peer=raw.types.PeerUser(user_id=member.user_id),
                kicked_by=self.viewer.user_id,
                date=member.date,
                banned_rights=raw.types.ChatBannedRights(until_date=0, view_messages=True),
            )
        if member.user_id == self.viewer.user_id:
            return raw.types.ChannelParticipantSelf(
                user_id=member.user_id, inviter_id=member.user_id, date=member.date
            )
        return raw.types.ChannelParticipant(user_id=member.user_id, date=member.date)


def _reply_header(message: Message, *, forum: bool) -> Any:
    in_topic = forum and message.topic_id not in (None, 1)
    if message.reply_to is None and not in_topic:
        return None
    if not in_topic:
        return raw.types.MessageReplyHeader(reply_to_msg_id=message.reply_to)
    if message.reply_to in (None, message.topic_id):
        return raw.types.MessageReplyHeader(forum_topic=True, reply_to_msg_id=message.topic_id)
    return raw.types.MessageReplyHeader(
        forum_topic=True, reply_to_msg_id=message.reply_to, reply_to_top_id=message.topic_id
    )


def _document(document: Document, reference: bytes) -> Any:
    return raw.types.Document(
        id=document.document_id,
        access_hash=document.access_hash,
        file_reference=reference,
        date=document.date,
        mime_type=document.mime,
        size=document.size,
        dc_id=document.dc_id,
        attributes=read_vector(document.attributes),
    )


def _photo(document: Document, reference: bytes) -> Any:
    # The sandbox measures no pictures: one size, the bytes as they came.
    size = raw.types.PhotoSize(type="x", w=800, h=600, size=document.size)
    return raw.types.Photo(
        id=document.document_id,
        access_hash=document.access_hash,
        file_reference=reference,
        date=document.date,
        sizes=[size],
        dc_id=document.dc_id,
    )
