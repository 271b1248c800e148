"""Reading sources beyond their plain history: forum topics, what changed, what an account may see."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pyrogram import raw

from worker.domain.telegram import Changes, Message, PostedNow, Topic, Visibility
from worker.errors import RetryableError
from worker.telegram.convert import to_message
from worker.telegram.kept_text import clean

if TYPE_CHECKING:
    from worker.domain.telegram import ChannelRef
    from worker.telegram.gateway import Gateway

PAGE = 100


def _peer(channel: ChannelRef) -> Any:
    return raw.types.InputPeerChannel(channel_id=channel.telegram_id, access_hash=channel.access_hash)


def _channel(channel: ChannelRef) -> Any:
    return raw.types.InputChannel(channel_id=channel.telegram_id, access_hash=channel.access_hash)


async def topic_page_after(
    gateway: Gateway, channel: ChannelRef, topic_id: int, message_id: int
) -> list[Message | int]:
    """The next messages of a topic above ``message_id``, oldest first; a bare id is a service message's."""
    answer = await gateway.read(
        raw.functions.messages.GetReplies(
            peer=_peer(channel),
            msg_id=topic_id,
            # A negative add_offset turns the page upward: it begins right above offset_id.
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


def page_above(message_id: int, answer: Any) -> list[Message | int]:
    """An answer's messages above this id, oldest first; a bare id stands for a service message.

    Whoever pages asks for what is above the page. An answer that never goes on must not have them ask for
    ever, nor be taken for the end.
    """
    page = [to_message(message) or int(message.id) for message in answer.messages]
    asked_for = sorted((item for item in page if _id_of(item) > message_id), key=_id_of)
    if page and not asked_for:
        raise RetryableError(f"the messages above {message_id} were asked for, and others came")
    return asked_for


def _id_of(item: Message | int) -> int:
    return item if isinstance(item, int) else item.message_id


async def topics_moved_since(gateway: Gateway, channel: ChannelRef, message_id: int) -> list[Topic]:
    """The topics whose newest message is above ``message_id``.

    They are listed by their newest message, pinned ones first, so that a forum of a thousand topics is read
    as far as something happened.
    """
    moved: dict[int, Topic] = {}
    seen: set[int] = set()
    date = offset_id = offset_topic = 0
    while True:
        answer = await gateway.read(
            raw.functions.messages.GetForumTopics(
                peer=_peer(channel),
                offset_date=date,
                offset_id=offset_id,
                offset_topic=offset_topic,
                limit=PAGE,
            ),
            channel,
        )
        page = [_topic(topic) for topic in answer.topics if isinstance(topic, raw.types.ForumTopic)]
        moved.update((topic.topic_id, topic) for topic in page if topic.top_message > message_id)
        fresh = {topic.topic_id for topic in page} - seen
        if not fresh or len(seen | fresh) >= answer.count:
            break
        last = page[-1]
        if last.top_message <= message_id and not last.is_pinned:
            break
        seen |= fresh
        dates = {message.id: getattr(message, "date", 0) for message in answer.messages}
        date, offset_id, offset_topic = dates.get(last.top_message, 0), last.top_message, last.topic_id
    return list(moved.values())


def _topic(topic: Any) -> Topic:
    return Topic(topic.id, clean(topic.title), topic.top_message, is_pinned=bool(topic.pinned))


async def changes_after(gateway: Gateway, channel: ChannelRef, pts: int) -> Changes:
    """What happened since ``pts``, or the next part of it: messages that came or were edited, deleted ids."""
    answer = await gateway.read(
        raw.functions.updates.GetChannelDifference(
            channel=_channel(channel),
            filter=raw.types.ChannelMessagesFilterEmpty(),
            pts=pts,
            limit=PAGE,
            force=True,
        ),
        channel,
    )
    if isinstance(answer, raw.types.updates.ChannelDifferenceEmpty):
        return Changes(answer.pts, is_final=True)
    if isinstance(answer, raw.types.updates.ChannelDifferenceTooLong):
        return Changes(answer.dialog.pts or pts, is_final=True, is_gap=True)
    messages = [*answer.new_messages]
    deleted: list[int] = []
    for update in answer.other_updates:
        if isinstance(update, raw.types.UpdateEditChannelMessage):
            messages.append(update.message)
        elif isinstance(update, raw.types.UpdateDeleteChannelMessages):
            deleted += update.messages
    found = [message for item in messages if (message := to_message(item)) is not None]
    return Changes(answer.pts, bool(answer.final), tuple(found), tuple(deleted))


async def posted_now(gateway: Gateway, channel: ChannelRef, message_id: int) -> PostedNow:
    """A message as it stands, with a fresh reference of its file, and what its channel allows."""
    answer = await gateway.read(
        raw.functions.channels.GetMessages(
            channel=_channel(channel), id=[raw.types.InputMessageID(id=message_id)]
        ),
        channel,
    )
    found = [message for item in answer.messages if (message := to_message(item)) is not None]
    chats = [chat for chat in answer.chats if chat.id == channel.telegram_id]
    # What the answer does not say is not allowed.
    is_protected = not chats or bool(getattr(chats[0], "noforwards", True))
    return PostedNow(found[0] if found else None, is_channel_protected=is_protected)


async def visibility(gateway: Gateway, channel: ChannelRef) -> Visibility:
    """How much of the channel this account may see, asked at this moment."""
    answer = await gateway.read(raw.functions.channels.GetFullChannel(channel=_channel(channel)), channel)
    first = int(answer.full_chat.available_min_id or 0)
    # Of this very answer: the account may have been shut out and let in again since.
    since = [chat.date for chat in answer.chats if getattr(chat, "id", None) == channel.telegram_id]
    return Visibility(first if first > 1 else 0, since[0] if since else None)


async def files_between(
    gateway: Gateway, channel: ChannelRef, topic_id: int, above: int, below: int
) -> list[Message]:
    """File messages that a search finds with ids above ``above`` and below ``below``, newest first."""
    answer = await gateway.read(
        raw.functions.messages.Search(
            peer=_peer(channel),
            q="",
            filter=raw.types.InputMessagesFilterDocument(),
            min_date=0,
            max_date=0,
            offset_id=below,
            add_offset=0,
            limit=PAGE,
            max_id=0,
            min_id=above,
            hash=0,
            top_msg_id=topic_id or None,
        ),
        channel,
    )
    found = [message for item in answer.messages if (message := to_message(item)) is not None]
    # Others than those were not asked for; the same ones again are the end.
    return [each for each in found if above < each.message_id and not 0 < below <= each.message_id]
