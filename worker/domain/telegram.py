"""What is known of Telegram's things, free of any client library's classes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from datetime import datetime

# The topic that every forum has, and that holds what was posted before it was one.
GENERAL = 1


@dataclass(frozen=True, slots=True)
class Me:
    """The account itself, as Telegram describes it."""

    user_id: int
    display_name: str
    username: str | None
    is_premium: bool


@dataclass(frozen=True, slots=True)
class ChannelRef:
    """How one account addresses a channel."""

    telegram_id: int
    access_hash: int


@dataclass(frozen=True, slots=True)
class ChannelInfo:
    """A channel as one account sees it."""

    ref: ChannelRef
    title: str
    username: str | None
    kind: str
    is_protected: bool
    can_post: bool
    member_since: int | None = None


@dataclass(frozen=True, slots=True)
class Visibility:
    """How much of a channel an account sees: everything from message ``first`` on, 0 for all of it.

    ``member_since`` is when it came in, by Telegram's clock: whoever comes back sees no more than a newcomer.
    """

    first: int
    member_since: int | None


@dataclass(frozen=True, slots=True)
class ChannelHead:
    """Where a channel stands: its newest message, and the count of everything that ever happened in it."""

    top_message: int
    pts: int


@dataclass(frozen=True, slots=True)
class Topic:
    """A topic of a forum; General is number 1."""

    topic_id: int
    title: str
    top_message: int
    is_pinned: bool = False


@dataclass(frozen=True, slots=True)
class Changes:
    """What happened in a channel up to ``pts``. ``is_gap``: more than the server remembers."""

    pts: int
    is_final: bool
    messages: tuple[Message, ...] = ()
    deleted: tuple[int, ...] = ()
    is_gap: bool = False


@dataclass(frozen=True, slots=True)
class Document:
    """A file on Telegram's servers. The reference grants access for some hours and is then fetched anew."""

    document_id: int
    access_hash: int
    reference: bytes
    dc_id: int
    size: int
    file_name: str
    mime_type: str


@dataclass(frozen=True, slots=True)
class Photo:
    """A picture on Telegram's servers, in one of the sizes it keeps of it."""

    photo_id: int
    access_hash: int
    reference: bytes
    dc_id: int
    size_type: str
    size: int


@dataclass(frozen=True, slots=True)
class Message:
    """A message of a channel; ``document`` is set if it carries a file, ``photo`` if it shows a picture.

    ``is_ours``: the account that reads it has sent it. ``sender_id`` is the user who sent it; 0 if it stands
    in the name of the channel or group itself, and -1 if in that of another chat.
    """

    message_id: int
    date: datetime
    text: str
    is_ours: bool
    document: Document | None = None
    poster_id: int | None = None
    album_id: int | None = None
    reply_to: int | None = None
    topic_id: int = 0
    is_protected: bool = False
    photo: Photo | None = None
    sender_id: int = -1
    is_edited: bool = False


@dataclass(frozen=True, slots=True)
class PostedNow:
    """A message at the moment it was asked for, None if it is gone, and whether its channel is protected."""

    message: Message | None
    is_channel_protected: bool


@dataclass(frozen=True, slots=True)
class UploadedFile:
    """Parts that were saved under one file id, ready to be sent."""

    file_id: int
    part_count: int
    name: str
    is_big: bool
    md5: str = ""
