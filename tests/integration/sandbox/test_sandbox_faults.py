import asyncio
import time

import pytest
from hang_guard import until
from pyrogram import enums, errors, raw
from running_sandbox import made_channel, peer_of, send_text, texts_in

MIB = 1024 * 1024


@pytest.fixture
async def posted(sandbox, tmp_path, phone):
    """A channel with one document of 3 MiB."""
    channel_id = await made_channel(sandbox, phone)
    source = tmp_path / "source.zip"
    source.write_bytes(bytes(range(256)) * (3 * MIB // 256))
    await sandbox.admin.post_document(channel_id, source, "source.zip")
    return channel_id


@pytest.fixture
async def client(sandbox, tmp_path, phone, posted):
    """A client that knows the channel."""
    async with sandbox.logged_in(phone, tmp_path) as client:
        await peer_of(client, posted)
        yield client


def get_file(document, offset=0):
    location = raw.types.InputDocumentFileLocation(
        id=document.id,
        access_hash=document.access_hash,
        file_reference=document.file_reference,
        thumb_size="",
    )
    return raw.functions.upload.GetFile(location=location, offset=offset, limit=MIB)


async def document_in(client, channel_id):
    peer = await peer_of(client, channel_id)
    query = raw.functions.channels.GetMessages(channel=peer, id=[raw.types.InputMessageID(id=2)])
    return (await client.invoke(query)).messages[0].media.document


async def test_an_error_rule_refuses_the_nth_call_only(sandbox, posted, client):
    await sandbox.admin.add_rule("upload.getFile", "error", nth=2, code=420, text="FLOOD_WAIT_600")
    document = await document_in(client, posted)
    await client.invoke(get_file(document))
    with pytest.raises(errors.FloodWait) as refused:
        await client.invoke(get_file(document, MIB))
    assert refused.value.value == 600
    assert len((await client.invoke(get_file(document, MIB))).bytes) == MIB


async def test_a_rule_for_one_account_leaves_the_others_alone(sandbox, posted, client):
    rule = await sandbox.admin.add_rule("upload.getFile", "error", account="+49399", count=0)
    document = await document_in(client, posted)
    await client.invoke(get_file(document))
    assert (await sandbox.admin.rule_hits())[rule] == 0


async def test_a_delayed_call_is_answered_later(sandbox, posted, client):
    await sandbox.admin.add_rule("upload.getFile", "delay", seconds=0.5)
    document = await document_in(client, posted)
    started = time.monotonic()
    await client.invoke(get_file(document))
    assert time.monotonic() - started >= 0.5


async def test_a_stalled_send_is_neither_applied_nor_answered(sandbox, posted, client):
    await sandbox.admin.add_rule("messages.sendMessage", "stall")
    with pytest.raises(TimeoutError):
        await send_text(client, posted, "stalled", 1, timeout=0.5)
    assert await texts_in(sandbox, posted) == []


async def test_a_frozen_connection_answers_nothing_more_and_stays_open(sandbox, posted, client):
    await sandbox.admin.add_rule("messages.sendMessage", "freeze")
    for _ in range(2):
        with pytest.raises(TimeoutError):
            await send_text(client, posted, "frozen", 1, timeout=0.5)
    assert await texts_in(sandbox, posted) == []
    assert client.session.connection.protocol.writer.is_closing() is False


async def test_a_disconnected_send_is_not_applied(sandbox, posted, client):
    await sandbox.admin.add_rule("messages.sendMessage", "disconnect")
    with pytest.raises((TimeoutError, OSError)):
        await send_text(client, posted, "cut", 1, timeout=1)
    assert await texts_in(sandbox, posted) == []


@pytest.mark.parametrize("action", ["drop_reply", "mute"])
async def test_a_send_whose_reply_is_lost_was_applied_and_repeats_harmlessly(sandbox, posted, client, action):
    await sandbox.admin.add_rule("messages.sendMessage", action)
    with pytest.raises((TimeoutError, OSError)):
        await send_text(client, posted, "once", 5, timeout=1)
    await send_text(client, posted, "once", 5)
    assert await texts_in(sandbox, posted) == ["once"]


async def test_a_repeat_while_the_first_send_still_runs_is_refused(sandbox, posted, client):
    rule = await sandbox.admin.add_rule("messages.sendMessage", "delay", seconds=None)
    first = asyncio.create_task(send_text(client, posted, "once", 5))
    while not (await sandbox.admin.rule_hits())[rule]:
        assert not first.done()
    peer = await client.storage.get_peer_by_id(int(f"-100{posted}"))
    with pytest.raises(errors.InternalServerError, match="RANDOM_ID_DUPLICATE"):
        await client.session.send(raw.functions.messages.SendMessage(peer=peer, message="once", random_id=5))
    await sandbox.admin.lift_rule(rule)
    await first
    assert await texts_in(sandbox, posted) == ["once"]


async def test_a_late_answer_comes_after_the_message_is_there(sandbox, posted, client):
    rule = await sandbox.admin.add_rule("messages.sendMessage", "late", seconds=None)
    sending = asyncio.create_task(send_text(client, posted, "late", 5))
    while not await texts_in(sandbox, posted):
        assert not sending.done()
    assert not sending.done()
    await sandbox.admin.lift_rule(rule)
    await sending


async def test_a_corrupted_chunk_has_the_right_length_and_wrong_bytes(sandbox, posted, client):
    await sandbox.admin.add_rule("upload.getFile", "corrupt")
    document = await document_in(client, posted)
    spoiled = (await client.invoke(get_file(document))).bytes
    whole = (await client.invoke(get_file(document))).bytes
    assert len(spoiled) == len(whole)
    assert spoiled != whole


async def test_a_short_chunk_has_half_its_bytes(sandbox, posted, client):
    await sandbox.admin.add_rule("upload.getFile", "short")
    document = await document_in(client, posted)
    assert len((await client.invoke(get_file(document))).bytes) == MIB // 2


async def test_a_corrupted_answer_of_another_kind_never_reaches_the_caller(sandbox, posted, client):
    await sandbox.admin.add_rule("messages.sendMessage", "corrupt")
    with pytest.raises((TimeoutError, OSError)):
        await send_text(client, posted, "garbled", 5, timeout=1)
    assert await texts_in(sandbox, posted) == ["garbled"]


async def test_expired_references_are_refused_until_the_message_is_fetched_anew(sandbox, posted, client):
    document = await document_in(client, posted)
    await sandbox.admin.expire_references()
    with pytest.raises(errors.FileReferenceExpired):
        await client.invoke(get_file(document))
    assert len((await client.invoke(get_file(await document_in(client, posted)))).bytes) == MIB


async def test_every_failed_call_is_in_the_journal(sandbox, posted, client, phone):
    await sandbox.admin.add_rule("upload.getFile", "error", code=420, text="FLOOD_PREMIUM_WAIT_3600")
    with pytest.raises(errors.FloodPremiumWait):
        await client.invoke(get_file(await document_in(client, posted)))
    calls = [c for c in await sandbox.admin.calls("upload.getFile") if c["phone"] == phone.strip("+")]
    assert [(c["phone"], c["ok"], c["error"]) for c in calls] == [
        (phone.strip("+"), False, "FLOOD_PREMIUM_WAIT_3600")
    ]


async def test_more_calls_than_the_limit_are_answered_with_the_wait_that_is_left(
    sandbox, posted, client, phone
):
    await sandbox.admin.add_rule("upload.getFile", "limit", count=2, seconds=60, account=phone)
    document = await document_in(client, posted)
    await client.invoke(get_file(document))
    await client.invoke(get_file(document))
    with pytest.raises(errors.FloodWait) as refused:
        await client.invoke(get_file(document))
    assert 50 < refused.value.value <= 60


async def test_a_call_made_during_its_flood_wait_is_noticed(sandbox, posted, client, phone):
    await sandbox.admin.add_rule("upload.getFile", "error", code=420, text="FLOOD_WAIT_600", account=phone)
    document = await document_in(client, posted)
    with pytest.raises(errors.FloodWait):
        await client.invoke(get_file(document))

    async def noticed():
        await client.invoke(get_file(document))
        calls = [c for c in await sandbox.admin.calls() if c["phone"] == phone.strip("+")]
        return [c for c in calls if c["early"]]

    (early,) = await until(noticed)
    assert early["method"] == "upload.getFile"


async def test_a_message_hidden_from_search_is_still_in_the_history(sandbox, posted, client):
    await sandbox.admin.hide_from_search(posted, [2])
    chat = int(f"-100{posted}")
    documents = enums.MessagesFilter.DOCUMENT
    assert [m.id async for m in client.search_messages(chat, filter=documents)] == []
    assert [m.id async for m in client.get_chat_history(chat)] == [2, 1]


async def test_a_rule_for_a_number_holds_before_it_has_logged_in(sandbox, tmp_path, other):
    await sandbox.admin.add_rule("auth.sendCode", "error", code=420, text="FLOOD_WAIT_86400", account=other)
    someone = sandbox.client("someone", tmp_path)
    await someone.connect()
    with pytest.raises(errors.FloodWait):
        await someone.send_phone_number_code(other)
    await someone.disconnect()
