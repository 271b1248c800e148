"""Layer 158, which Pyrogram 2.0 speaks: how its queries are understood and answered."""

from __future__ import annotations

from importlib import resources
from typing import TYPE_CHECKING, Any

from pyrogram import raw
from pyrogram.raw.core import TLObject

from worker.sandbox.layers.schema import Constructor, parse
from worker.sandbox.tl import Encoded

if TYPE_CHECKING:
    from collections.abc import Callable
    from io import BytesIO

OLD_LAYER = 158
_CONSTRUCTORS = parse(resources.files(__package__).joinpath("layer158.tl").read_text())
_BY_NAME = {constructor.name: constructor for constructor in _CONSTRUCTORS}
# What these answers wrap today was the answer itself.
_WRAPPERS = (raw.types.messages.ChatInviteJoinResultOk, raw.types.messages.InvitedUsers)


def _reply(values: dict[str, Any]) -> dict[str, Any]:
    """A message answered to was named by two numbers."""
    message_id, topic_id = values.pop("reply_to_msg_id", None), values.pop("top_msg_id", None)
    if message_id is not None or topic_id is not None:
        values["reply_to"] = raw.types.InputReplyToMessage(
            reply_to_msg_id=message_id or topic_id, top_msg_id=topic_id
        )
    return values


def _forum(values: dict[str, Any]) -> dict[str, Any]:
    """Forums were channels only."""
    channel = values.pop("channel")
    values["peer"] = raw.types.InputPeerChannel(
        channel_id=channel.channel_id, access_hash=channel.access_hash
    )
    return values


_SUCCESSORS: dict[str, tuple[str, Callable[[dict[str, Any]], dict[str, Any]]]] = {
    "functions.messages.SendMessage": ("functions.messages.SendMessage", _reply),
    "functions.messages.SendMedia": ("functions.messages.SendMedia", _reply),
    "functions.messages.SendMultiMedia": ("functions.messages.SendMultiMedia", _reply),
    "functions.channels.CreateForumTopic": ("functions.messages.CreateForumTopic", _forum),
    "functions.channels.GetForumTopics": ("functions.messages.GetForumTopics", _forum),
    "functions.channels.GetForumTopicsByID": ("functions.messages.GetForumTopicsByID", _forum),
}


def _class_of(name: str) -> Any:
    found: Any = raw
    for part in name.split("."):
        found = getattr(found, part)
    return found


class _Reader:
    """Stands in the library's registry for an old constructor and returns an object of its successor."""

    def __init__(self, constructor: Constructor) -> None:
        name, self._change = _SUCCESSORS.get(constructor.name, (constructor.name, lambda values: values))
        self._class = _class_of(name)
        self._constructor = constructor

    def read(self, data: BytesIO, *_: Any) -> Any:
        return self._class(**self._change(self._constructor.read(data)))


def readers() -> dict[int, _Reader]:
    """What has to be added to the registry for old queries to be understood."""
    return {constructor.number: _Reader(constructor) for constructor in _CONSTRUCTORS}


def translate(item: Any) -> Any:
    """Return an answer with everything in it that has changed since put in the old words."""
    if isinstance(item, list):
        return [translate(part) for part in item]
    if not isinstance(item, TLObject):
        return item
    if isinstance(item, _WRAPPERS):
        return translate(item.updates)
    values = {name: translate(getattr(item, name)) for name in item.__slots__}
    constructor = _BY_NAME.get(item.QUALNAME)
    if constructor is not None:
        return Encoded(constructor.write(values))
    copy = object.__new__(type(item))
    for name, value in values.items():
        setattr(copy, name, value)
    return copy
