import asyncio
import hashlib
import os

import psutil
import pytest
from pyrogram import errors, raw
from running_sandbox import RunningSandbox, made_channel, peer_of

KIB, MIB = 1024, 1024 * 1024
PART = 512 * KIB


@pytest.fixture
async def client(sandbox, tmp_path, phone):
    async with sandbox.logged_in(phone, tmp_path) as client:
        yield client


async def save_big(client, part, total, data, file_id=9):
    query = raw.functions.upload.SaveBigFilePart(
        file_id=file_id, file_part=part, file_total_parts=total, bytes=data
    )
    return await client.session.invoke(query, retries=1)


async def send(client, peer, parts, file_id=9, random_id=1):
    media = raw.types.InputMediaUploadedDocument(
        file=raw.types.InputFileBig(id=file_id, parts=parts, name="a.zip"), mime_type="a/b", attributes=[]
    )
    query = raw.functions.messages.SendMedia(peer=peer, media=media, message="", random_id=random_id)
    return await client.session.invoke(query, retries=1)


@pytest.mark.parametrize(
    ("part", "total", "size", "refusal"),
    [
        (0, 3, 0, "FILE_PART_EMPTY"),
        (0, 3, PART + 1024, "FILE_PART_TOO_BIG"),
        (0, 3, 1000, "FILE_PART_SIZE_INVALID"),
        (0, 3, 96 * KIB, "FILE_PART_SIZE_INVALID"),
        (3, 3, PART, "FILE_PART_INVALID"),
        (0, 4001, PART, "FILE_PARTS_INVALID"),
    ],
)
async def test_parts_the_real_server_refuses_are_refused(client, part, total, size, refusal):
    with pytest.raises(errors.BadRequest) as refused:
        await save_big(client, part, total, bytes(size))
    assert refusal == refused.value.ID


async def test_premium_accounts_may_send_8000_parts(sandbox, client, phone):
    await sandbox.admin.set_premium(phone, True)
    assert await save_big(client, 7999, 8000, b"end")
    with pytest.raises(errors.FilePartsInvalid):
        await save_big(client, 0, 8001, bytes(PART), file_id=10)


async def test_the_part_size_may_not_change_within_a_file(client):
    await save_big(client, 0, 3, bytes(PART))
    with pytest.raises(errors.FilePartSizeChanged):
        await save_big(client, 1, 3, bytes(PART // 2))


async def test_a_missing_part_is_named_and_cured_by_sending_it(sandbox, client, phone):
    made = await client.create_channel("Archives")
    peer = await client.resolve_peer(made.id)
    data = os.urandom(2 * PART + 5)
    for part in range(3):
        await save_big(client, part, 3, data[part * PART : (part + 1) * PART])
    await sandbox.admin.lose_parts(phone, [1])
    with pytest.raises(errors.FilePartMissing) as missing:
        await send(client, peer, 3)
    assert missing.value.value == 1
    await save_big(client, 1, 3, data[PART : 2 * PART])
    sent = await send(client, peer, 3)
    assert sent.updates[-1].message.media.document.size == len(data)


async def test_parts_of_128_kib_make_the_same_file(sandbox, client, tmp_path):
    made = await client.create_channel("Archives")
    data, size = os.urandom(300 * KIB), 128 * KIB
    for part in (2, 0, 1):
        await save_big(client, part, 3, data[part * size : (part + 1) * size])
    sent = await send(client, await client.resolve_peer(made.id), 3)
    fetched = await client.invoke(get_file(sent.updates[-1].message.media.document, 0, 512 * KIB))
    assert fetched.bytes == data


async def test_a_small_file_is_checked_against_its_md5(sandbox, client):
    made = await client.create_channel("Archives")
    await client.invoke(raw.functions.upload.SaveFilePart(file_id=3, file_part=0, bytes=b"hello"))
    media = raw.types.InputMediaUploadedDocument(
        file=raw.types.InputFile(id=3, parts=1, name="a.txt", md5_checksum="0" * 32),
        mime_type="text/plain",
        attributes=[],
    )
    peer = await client.resolve_peer(made.id)
    with pytest.raises(errors.Md5ChecksumInvalid):
        await client.invoke(raw.functions.messages.SendMedia(peer=peer, media=media, message="", random_id=1))


async def test_more_than_10_mib_need_the_call_for_big_files(client):
    made = await client.create_channel("Archives")
    for part in range(21):
        query = raw.functions.upload.SaveFilePart(file_id=3, file_part=part, bytes=bytes(PART))
        await client.invoke(query)
    media = raw.types.InputMediaUploadedDocument(
        file=raw.types.InputFile(id=3, parts=21, name="a.zip", md5_checksum=""),
        mime_type="a/b",
        attributes=[],
    )
    peer = await client.resolve_peer(made.id)
    with pytest.raises(errors.FilePartsInvalid):
        await client.invoke(raw.functions.messages.SendMedia(peer=peer, media=media, message="", random_id=1))


def get_file(document, offset, limit, *, precise=False):
    location = raw.types.InputDocumentFileLocation(
        id=document.id,
        access_hash=document.access_hash,
        file_reference=document.file_reference,
        thumb_size="",
    )
    return raw.functions.upload.GetFile(
        location=location, offset=offset, limit=limit, precise=precise or None
    )


async def test_ranges_follow_the_rules_of_the_real_server(sandbox, client, tmp_path, phone):
    channel_id = await made_channel(sandbox, "+49302")
    await sandbox.admin.join(channel_id, phone)
    data = os.urandom(3 * MIB + 77)
    (tmp_path / "a.zip").write_bytes(data)
    posted = await sandbox.admin.post_document(channel_id, tmp_path / "a.zip", "a.zip")
    peer = await peer_of(client, channel_id)
    named = [raw.types.InputMessageID(id=posted["message_id"])]
    answer = await client.invoke(raw.functions.channels.GetMessages(channel=peer, id=named))
    document = answer.messages[0].media.document

    async def read(offset, limit, *, precise=False):
        return (await client.invoke(get_file(document, offset, limit, precise=precise))).bytes

    assert await read(MIB, MIB) == data[MIB : 2 * MIB]
    assert await read(3 * MIB, MIB) == data[3 * MIB :]
    assert await read(4 * MIB, MIB) == b""
    assert await read(1024, 1024, precise=True) == data[1024:2048]
    for offset, limit in [(1024, 4096), (0, 1024), (0, 3 * 4096), (512 * KIB, MIB), (0, 2 * MIB)]:
        with pytest.raises((errors.OffsetInvalid, errors.LimitInvalid)):
            await read(offset, limit)
    with pytest.raises(errors.LimitInvalid):
        await read(MIB - 1024, 2048, precise=True)


async def test_the_hashes_of_a_file_are_those_of_its_ranges(sandbox, client, phone, tmp_path):
    data = os.urandom(MIB + 200 * KIB)
    (tmp_path / "a.zip").write_bytes(data)
    made = await sandbox.admin.create_channel("Archives", admins=[phone])
    await sandbox.admin.post_document(made["channel_id"], tmp_path / "a.zip", "a.zip")
    peer = await peer_of(client, made["channel_id"])
    answer = await client.invoke(
        raw.functions.channels.GetMessages(channel=peer, id=[raw.types.InputMessageID(id=2)])
    )
    location = get_file(answer.messages[0].media.document, 0, MIB).location
    first = await client.invoke(raw.functions.upload.GetFileHashes(location=location, offset=0))
    second = await client.invoke(raw.functions.upload.GetFileHashes(location=location, offset=MIB))
    hashed = list(first) + list(second)
    assert [h.hash for h in hashed] == [
        hashlib.sha256(data[h.offset : h.offset + h.limit]).digest() for h in hashed
    ]
    assert sum(h.limit for h in hashed) == len(data)


async def test_memory_stays_flat_while_files_pass_through(phone, tmp_path):
    running = RunningSandbox.start("--state", str(tmp_path / "state"))
    server = psutil.Process(running.process.pid)
    parts, at_once = 96, 8
    async with running.logged_in(phone, tmp_path) as client:
        channel = await client.create_channel("Archives")

        async def upload(first, last):
            for start in range(first, last, at_once):
                batch = range(start, start + at_once)
                await asyncio.gather(*(save_big(client, part, parts, bytes(PART)) for part in batch))

        await upload(0, 16)
        before = server.memory_info().rss
        await upload(16, parts)
        sent = await send(client, await client.resolve_peer(channel.id), parts)
        document = sent.updates[-1].message.media.document
        for start in range(0, parts // 2, at_once):
            batch = range(start, start + at_once)
            await asyncio.gather(*(client.invoke(get_file(document, n * MIB, MIB)) for n in batch))
        grown = server.memory_info().rss - before
    running.stop()
    assert grown < 48 * MIB
