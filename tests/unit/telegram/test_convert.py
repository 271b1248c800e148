"""From the protocol's objects to our own."""

import pytest
from pyrogram import raw

from worker.telegram.convert import to_channel, to_message


def _message(**fields):
    return raw.types.Message(id=1, peer_id=raw.types.PeerChannel(channel_id=5), date=0, message="", **fields)


def test_a_character_that_postgresql_cannot_keep_is_replaced_everywhere():
    document = raw.types.Document(
        id=1,
        access_hash=2,
        file_reference=b"",
        date=0,
        mime_type="a\0b",
        size=3,
        dc_id=2,
        attributes=[raw.types.DocumentAttributeFilename(file_name="evil\0name.zip")],
    )
    message = _message(media=raw.types.MessageMediaDocument(document=document))
    message.message = "cap\0tion"
    found = to_message(message)
    assert "\0" not in found.text + found.document.file_name + found.document.mime_type
    chat = raw.types.Channel(
        id=5, title="ti\0tle", photo=raw.types.ChatPhotoEmpty(), date=0, access_hash=1, broadcast=True
    )
    assert to_channel(chat).title == "ti\ufffdtle"


def _group(**fields):
    return to_channel(
        raw.types.Channel(
            id=5,
            title="Group",
            photo=raw.types.ChatPhotoEmpty(),
            date=0,
            access_hash=1,
            megagroup=True,
            **fields,
        )
    )


def test_a_channel_that_is_only_mentioned_is_none_that_the_account_is_in():
    assert _group(min=True) is None


@pytest.mark.parametrize("ban", ["view_messages", "send_messages", "send_docs"])
def test_an_account_that_a_group_lets_send_no_files_may_not_post_there(ban):
    banned = raw.types.ChatBannedRights(until_date=0, **{ban: True})
    assert _group().can_post
    assert not _group(banned_rights=banned).can_post
    assert not _group(default_banned_rights=banned).can_post
    rights = raw.types.ChatAdminRights(delete_messages=True)
    assert _group(default_banned_rights=banned, admin_rights=rights).can_post


def test_in_a_group_of_readers_only_administrators_may_post():
    assert not _group(gigagroup=True).can_post


def test_service_messages_and_empty_ones_are_no_messages():
    assert to_message(raw.types.MessageEmpty(id=3)) is None


def test_a_topic_is_known_by_its_first_message():
    reply = raw.types.MessageReplyHeader(reply_to_msg_id=9, reply_to_top_id=7, forum_topic=True)
    assert to_message(_message(reply_to=reply)).topic_id == 7
    plain = raw.types.MessageReplyHeader(reply_to_msg_id=9)
    assert (to_message(_message(reply_to=plain)).topic_id, to_message(_message(reply_to=plain)).reply_to) == (
        0,
        9,
    )
