"""From the protocol's objects to our own."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from pyrogram import raw

from worker.domain.telegram import ChannelInfo, ChannelRef, Document, Me, Message
from worker.telegram.kept_text import clean
from worker.telegram.photos import to_photo


def to_me(user: Any) -> Me:
    """The account itself."""
    name = clean(" ".join(part for part in (user.first_name, user.last_name) if part))
    return Me(user.id, name, user.username and clean(user.username), is_premium=bool(user.premium))


def to_channel(chat: Any) -> ChannelInfo | None:
    """A channel or supergroup the account is in; None for anything else, which the fleet has no use for."""
    # One that is only mentioned says neither whether the account is in it nor how it is addressed.
    if not isinstance(chat, raw.types.Channel) or chat.min or chat.left or chat.access_hash is None:
        return None
    kind = "forum" if chat.forum else "supergroup" if chat.megagroup else "channel"
    return ChannelInfo(
        ref=ChannelRef(chat.id, chat.access_hash),
        title=clean(chat.title),
        username=chat.username and clean(chat.username),
        kind=kind,
        is_protected=bool(chat.noforwards),
        can_post=_may_post(chat),
        member_since=chat.date,
    )


def _may_post(chat: Any) -> bool:
    """Whether the account may send files there; what others may not, administrators of a group may."""
    if chat.creator:
        return True
    if not chat.megagroup:
        return chat.admin_rights is not None and bool(chat.admin_rights.post_messages)
    if chat.admin_rights is not None:
        return True
    bans = (ban for ban in (chat.banned_rights, chat.default_banned_rights) if ban is not None)
    return not chat.gigagroup and not any(
        ban.view_messages or ban.send_messages or ban.send_docs for ban in bans
    )


def to_message(message: Any) -> Message | None:
    """An ordinary message; None for service messages and for ids that hold nothing."""
    if not isinstance(message, raw.types.Message):
        return None
    reply = message.reply_to if isinstance(message.reply_to, raw.types.MessageReplyHeader) else None
    return Message(
        message_id=message.id,
        date=datetime.fromtimestamp(message.date, UTC),
        text=clean(message.message),
        is_ours=bool(message.out),
        document=to_document(message.media),
        poster_id=_peer_id(message.from_id),
        album_id=message.grouped_id,
        reply_to=reply.reply_to_msg_id if reply else None,
        topic_id=_topic_id(reply),
        is_protected=bool(message.noforwards),
        photo=to_photo(message.media),
        sender_id=_sender_id(message),
        is_edited=message.edit_date is not None,
    )


def _topic_id(reply: Any) -> int:
    if reply is None or not reply.forum_topic:
        return 0
    return int(reply.reply_to_top_id or reply.reply_to_msg_id or 0)


def _sender_id(message: Any) -> int:
    """Users and chats are numbered apart from each other: only a user's id may stand for a user."""
    sender = message.from_id
    if isinstance(sender, raw.types.PeerUser):
        return int(sender.user_id)
    # A channel's posts name nobody, and an administrator who stays anonymous posts in the group's name.
    is_chats_own = sender is None or (
        isinstance(sender, raw.types.PeerChannel)
        and isinstance(message.peer_id, raw.types.PeerChannel)
        and sender.channel_id == message.peer_id.channel_id
    )
    return 0 if is_chats_own else -1


def _peer_id(peer: Any) -> int | None:
    for field in ("user_id", "channel_id", "chat_id"):
        if (value := getattr(peer, field, None)) is not None:
            return int(value)
    return None


def to_document(media: Any) -> Document | None:
    """The file of a message, if it carries one."""
    if not isinstance(media, raw.types.MessageMediaDocument):
        return None
    document = media.document
    if not isinstance(document, raw.types.Document):
        return None
    names = [a.file_name for a in document.attributes if isinstance(a, raw.types.DocumentAttributeFilename)]
    return Document(
        document_id=document.id,
        access_hash=document.access_hash,
        reference=document.file_reference,
        dc_id=document.dc_id,
        size=document.size,
        file_name=clean(names[0]) if names else "",
        mime_type=clean(document.mime_type),
    )


def sent_message(updates: Any, random_id: int) -> Message | None:
    """The message that a send with ``random_id`` made, out of the updates it was answered with.

    A repeat may be answered with the number alone: the message has been deleted since.
    """
    listed = getattr(updates, "updates", [])
    ids = {u.random_id: u.id for u in listed if isinstance(u, raw.types.UpdateMessageID)}
    for update in listed:
        if isinstance(update, raw.types.UpdateNewChannelMessage | raw.types.UpdateNewMessage) and (
            update.message.id == ids.get(random_id)
        ):
            return to_message(update.message)
    if random_id in ids:
        return Message(ids[random_id], datetime.fromtimestamp(updates.date, UTC), text="", is_ours=True)
    return None
