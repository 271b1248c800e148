"""A benchmark believes no client: the server says which bytes came."""

import contextlib
import hashlib
from pathlib import Path

import pytest
import transfer_server
from pyrogram import raw
from running_sandbox import RunningSandbox
from transfer_report import Line

MIB, PART = 1 << 20, 128 * 1024


@pytest.fixture
def server(tmp_path, monkeypatch):
    monkeypatch.setattr(transfer_server, "HOME", tmp_path)
    with contextlib.closing(transfer_server.Server(Line(0, 0.0))) as running:
        yield running


@pytest.fixture
async def given(server):
    (given,) = await server.arrange([MIB])
    return given


@pytest.fixture
async def client(server, given, tmp_path):
    async with RunningSandbox(None, [], server.facts).logged_in(given["phone"], tmp_path) as client:
        yield client


async def save_in_small_parts(client, data):
    count = len(data) // PART
    for part in range(count):
        piece = data[part * PART : (part + 1) * PART]
        query = raw.functions.upload.SaveBigFilePart(
            file_id=7, file_part=part, file_total_parts=count, bytes=piece
        )
        await client.invoke(query)


async def test_an_upload_is_hashed_whatever_the_size_of_its_parts(server, given, client):
    data = Path(given["file"]).read_bytes()
    await client.save_file(given["file"])
    assert server.received("up") == hashlib.sha256(data).hexdigest()
    server.forget_uploads()
    await save_in_small_parts(client, data)
    assert server.received("up") == hashlib.sha256(data).hexdigest()


async def test_an_upload_with_a_wrong_byte_is_noticed(server, given, client):
    data = bytearray(Path(given["file"]).read_bytes())
    data[-1] ^= 1
    await save_in_small_parts(client, bytes(data))
    assert server.received("up") != transfer_server.sha256_of(MIB)


async def test_what_was_published_is_hashed_from_the_message(server, given, client):
    async for _ in client.get_dialogs():
        pass
    await client.send_document(int(f"-100{given['channel_id']}"), given["file"], force_document=True)
    assert server.received("publish") == transfer_server.sha256_of(MIB)


async def test_nothing_is_to_be_received_by_a_download(server, given):
    assert server.received("down") is None
