"""What a person may call a channel by: its id, @name or link, an invitation, or its title."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum


class NamedBy(StrEnum):
    """The kinds of names."""

    ID = "id"
    USERNAME = "username"
    INVITE = "invite"
    GROUP = "group"  # a basic group's id: those are no channels
    TITLE = "title"


@dataclass(frozen=True, slots=True)
class ChannelName:
    """A name as it was understood."""

    by: NamedBy
    value: str

    @property
    def telegram_id(self) -> int:
        return int(self.value)


_LINK = re.compile(r"(?:https?://)?(?:www\.)?(?:t|telegram)\.(?:me|dog)/(?P<path>[^?#]+).*", re.IGNORECASE)
_INVITE = re.compile(r"(?:\+|joinchat/)(?P<hash>[\w-]+)/?", re.IGNORECASE)
_APP_INVITE = re.compile(r"tg:(?://)?join\?invite=(?P<hash>[\w-]+)", re.IGNORECASE)
_APP_NAME = re.compile(r"tg:(?://)?resolve\?domain=(?P<name>\w+).*", re.IGNORECASE)
_PRIVATE = re.compile(r"c/(?P<id>\d+)(?:/.*)?", re.IGNORECASE)
_PUBLIC = re.compile(r"(?:s/)?(?P<name>[a-z]\w{3,31})(?:/.*)?", re.IGNORECASE)
_USERNAME = re.compile(r"@(?P<name>[a-z]\w{3,31})", re.IGNORECASE)
# Bots and some clients put this before a channel's id.
_MARKED_ID = re.compile(r"-100(?P<id>\d{6,})")


def channel_name(text: str) -> ChannelName:
    """Understand what was typed; whatever looks like nothing else is a title."""
    text = text.strip()
    link = _LINK.fullmatch(text)
    path = link["path"] if link else None
    for kind, pattern, subject in (
        (NamedBy.INVITE, _APP_INVITE, text),
        (NamedBy.USERNAME, _APP_NAME, text),
        (NamedBy.INVITE, _INVITE, path),
        (NamedBy.ID, _PRIVATE, path),
        (NamedBy.USERNAME, _PUBLIC, path),
        (NamedBy.USERNAME, _USERNAME, text),
        (NamedBy.ID, _MARKED_ID, text),
    ):
        if subject is not None and (found := pattern.fullmatch(subject)):
            return ChannelName(kind, found[1])
    if text.isascii() and text.isdigit():
        return ChannelName(NamedBy.ID, text)
    if text.startswith("-") and text[1:].isdigit():
        return ChannelName(NamedBy.GROUP, text)
    return ChannelName(NamedBy.TITLE, text)
