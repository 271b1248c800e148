import hashlib
import os
import subprocess
import sys
from pathlib import Path

from forked import ROOT
from pyrogram import raw
from running_sandbox import RunningSandbox, made_channel, peer_of

PART = 512 * 1024
BIG = 11 * 1024 * 1024


async def upload_part(client, data, part):
    return await client.invoke(
        raw.functions.upload.SaveBigFilePart(
            file_id=9,
            file_part=part,
            file_total_parts=len(data) // PART,
            bytes=data[part * PART : (part + 1) * PART],
        )
    )


async def send_uploaded(client, peer, data, random_id):
    media = raw.types.InputMediaUploadedDocument(
        file=raw.types.InputFileBig(id=9, parts=len(data) // PART, name="a.zip"),
        mime_type="application/zip",
        attributes=[raw.types.DocumentAttributeFilename(file_name="a.zip")],
    )
    query = raw.functions.messages.SendMedia(peer=peer, media=media, message="kept", random_id=random_id)
    return await client.invoke(query)


async def test_everything_survives_a_kill_of_the_server(own_sandbox, tmp_path, phone):
    channel_id = await made_channel(own_sandbox, phone)
    data = os.urandom(BIG)
    async with own_sandbox.logged_in(phone, tmp_path) as client:
        peer = await peer_of(client, channel_id)
        for part in range(len(data) // PART):
            await upload_part(client, data, part)
        await send_uploaded(client, peer, data, 5)
    before, facts = await own_sandbox.admin.messages(channel_id), own_sandbox.facts
    own_sandbox.restart()
    assert own_sandbox.facts == facts
    assert await own_sandbox.admin.messages(channel_id) == before
    assert before[-1]["sha256"] == hashlib.sha256(data).hexdigest()
    async with own_sandbox.logged_in(phone, tmp_path) as client:
        await send_uploaded(client, await peer_of(client, channel_id), data, 5)
    assert await own_sandbox.admin.messages(channel_id) == before


async def test_an_upload_goes_on_after_a_kill_of_the_server(own_sandbox, tmp_path, phone):
    channel_id = await made_channel(own_sandbox, phone)
    data = os.urandom(BIG)
    half = len(data) // PART // 2
    async with own_sandbox.logged_in(phone, tmp_path) as client:
        for part in range(half):
            await upload_part(client, data, part)
    own_sandbox.restart()
    async with own_sandbox.logged_in(phone, tmp_path) as client:
        for part in range(half, len(data) // PART):
            await upload_part(client, data, part)
        await send_uploaded(client, await peer_of(client, channel_id), data, 6)
    sent = (await own_sandbox.admin.messages(channel_id))[-1]
    assert sent["sha256"] == hashlib.sha256(data).hexdigest()


async def test_a_connected_client_finds_its_way_back_to_a_restarted_server(own_sandbox, tmp_path, phone):
    channel_id = await made_channel(own_sandbox, phone)
    async with own_sandbox.logged_in(phone, tmp_path) as client:
        peer = await peer_of(client, channel_id)
        own_sandbox.restart()
        answer = await client.invoke(raw.functions.channels.GetFullChannel(channel=peer))
    assert answer.full_chat.id == channel_id


async def test_the_journal_says_who_was_connected_from_where_and_when(own_sandbox, tmp_path, phone):
    async with own_sandbox.logged_in(phone, tmp_path):
        during = await own_sandbox.admin.connections()
    after = await own_sandbox.admin.connections()
    assert [c["disconnected_at"] is None for c in during] == [True]
    assert all(c["disconnected_at"] >= c["connected_at"] for c in after)
    assert {(c["phone"], c["address"]) for c in after} == {(phone.strip("+"), "127.0.0.1")}
    assert len({c["auth_key_id"] for c in after}) == 1


async def test_a_killed_server_counts_its_connections_as_ended(own_sandbox, tmp_path, phone):
    async with own_sandbox.logged_in(phone, tmp_path):
        own_sandbox.restart()
        ended = [c for c in await own_sandbox.admin.connections() if c["disconnected_at"] is not None]
        assert len(ended) >= 1


def test_two_servers_cannot_share_a_state(own_sandbox):
    command = [sys.executable, "-m", "worker.sandbox", *own_sandbox.arguments]
    second = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, timeout=60, check=False)
    assert second.returncode == 2
    assert "Another sandbox runs on" in second.stderr
    assert "Traceback" not in second.stderr


def test_a_port_that_is_taken_is_said_so(own_sandbox):
    command = [sys.executable, "-m", "worker.sandbox", "--port", str(own_sandbox.facts["port"])]
    second = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, timeout=60, check=False)
    assert second.returncode == 2
    assert "choose another --port" in second.stderr


def test_a_stopped_server_ends_cleanly_and_leaves_no_temporary_state():
    running = RunningSandbox.start()
    folder = Path(running.facts["public_key"]).parent
    assert folder.exists()
    assert running.stop() == {"exit": 0}
    assert not folder.exists()
