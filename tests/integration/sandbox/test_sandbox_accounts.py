import asyncio
import os
import time

import pytest
from pyrogram import errors, raw
from pyrogram.crypto import mtproto
from pyrogram.raw.core import Message
from running_sandbox import RunningSandbox, log_in


async def ping_from_elsewhere(sandbox, session):
    """Send one well-sealed ping with a session's key from a second loopback address, and wait for any answer."""
    host, port = sandbox.facts["host"], sandbox.facts["port"]
    reader, writer = await asyncio.open_connection(host, port, local_addr=("127.0.0.2", 0))
    ping = raw.functions.Ping(ping_id=1)
    msg_id = int(time.time() * 2**32) & ~0b11
    message = Message(ping, msg_id, 0, len(ping.write()))
    packet = mtproto.pack(message, session.salt, os.urandom(8), session.auth_key, session.auth_key_id)
    writer.write(b"\xef" + bytes([len(packet) // 4]) + packet)
    assert await reader.read(1)
    writer.close()


async def test_a_wrong_code_is_refused_and_the_right_one_still_works(sandbox, tmp_path, phone):
    client = sandbox.client("someone", tmp_path)
    await client.connect()
    with pytest.raises(errors.PhoneCodeInvalid):
        await log_in(client, phone, "00000")
    await log_in(client, phone)
    assert (await client.get_me()).phone_number == phone.strip("+")
    await client.disconnect()


async def test_a_code_of_an_older_attempt_has_expired(sandbox, tmp_path, phone):
    client = sandbox.client("someone", tmp_path)
    await client.connect()
    first = await client.send_phone_number_code(phone)
    await client.send_phone_number_code(phone)
    with pytest.raises(errors.PhoneCodeExpired):
        await client.sign_in(phone, first.phone_code_hash, "12345")
    await client.disconnect()


async def test_nobody_signs_up_without_having_shown_the_code(sandbox, tmp_path, phone):
    client = sandbox.client("someone", tmp_path)
    await client.connect()
    sent = await client.send_phone_number_code(phone)
    with pytest.raises(errors.PhoneCodeEmpty):
        await client.sign_up(phone, sent.phone_code_hash, "Test", "Account")
    assert not await client.sign_in(phone, sent.phone_code_hash, "12345")
    await client.sign_up(phone, sent.phone_code_hash, "Test", "Account")
    assert (await client.get_me()).first_name == "Test"
    await client.disconnect()


async def test_an_application_that_cannot_be_one_is_refused(sandbox, tmp_path, phone):
    client = sandbox.client("someone", tmp_path)
    client.api_hash = "not a hash"
    await client.connect()
    with pytest.raises(errors.ApiIdInvalid):
        await client.send_phone_number_code(phone)
    await client.disconnect()


async def test_calls_before_the_login_are_unauthorised(sandbox, tmp_path):
    client = sandbox.client("someone", tmp_path)
    await client.connect()
    with pytest.raises(errors.AuthKeyUnregistered):
        await client.invoke(raw.functions.updates.GetState())
    await client.disconnect()


async def test_a_password_is_asked_for_and_checked(sandbox, tmp_path, phone):
    await sandbox.admin.create_account(phone, "Safe", password="correct horse")
    client = sandbox.client("someone", tmp_path)
    await client.connect()
    with pytest.raises(errors.SessionPasswordNeeded):
        await log_in(client, phone)
    with pytest.raises(errors.PasswordHashInvalid):
        await client.check_password("wrong")
    assert (await client.check_password("correct horse")).first_name == "Safe"
    await client.disconnect()


async def test_a_password_can_be_set_and_cleared_later(sandbox, tmp_path, phone):
    await sandbox.admin.create_account(phone, "Safe")
    await sandbox.admin.set_password(phone, "first")
    await sandbox.admin.set_password(phone, "correct horse")
    client = sandbox.client("someone", tmp_path)
    await client.connect()
    with pytest.raises(errors.SessionPasswordNeeded):
        await log_in(client, phone)
    with pytest.raises(errors.PasswordHashInvalid):
        await client.check_password("first")
    assert (await client.check_password("correct horse")).first_name == "Safe"
    await client.disconnect()

    await sandbox.admin.set_password(phone, None)
    other = sandbox.client("somewhere else", tmp_path)
    await other.connect()
    await log_in(other, phone)
    assert (await other.get_me()).first_name == "Safe"
    await other.disconnect()


async def test_premium_shows_at_the_next_look(sandbox, tmp_path, phone):
    async with sandbox.logged_in(phone, tmp_path) as client:
        assert not (await client.get_me()).is_premium
        await sandbox.admin.set_premium(phone, True)
        assert (await client.get_me()).is_premium


async def test_a_banned_account_can_call_nothing(sandbox, tmp_path, phone):
    async with sandbox.logged_in(phone, tmp_path) as client:
        await sandbox.admin.ban_account(phone)
        with pytest.raises(errors.UserDeactivatedBan):
            await client.invoke(raw.functions.updates.GetState())


async def test_logging_out_ends_the_authorisation(sandbox, tmp_path, phone):
    client = sandbox.client("someone", tmp_path)
    await client.connect()
    await log_in(client, phone)
    await client.invoke(raw.functions.auth.LogOut())
    with pytest.raises(errors.AuthKeyUnregistered):
        await client.invoke(raw.functions.updates.GetState())
    await client.disconnect()


async def test_one_key_from_two_addresses_is_dead_for_good(sandbox, tmp_path, phone):
    async with sandbox.logged_in(phone, tmp_path) as client:
        auth_key_id = client.session.auth_key_id
        await ping_from_elsewhere(sandbox, client.session)
        with pytest.raises(errors.AuthKeyDuplicated):
            await client.invoke(raw.functions.updates.GetState())
    again = sandbox.client(phone.strip("+"), tmp_path)
    with pytest.raises(errors.AuthKeyDuplicated):
        await again.connect()
    key_id = int.from_bytes(auth_key_id, "little", signed=True)
    addresses = {c["address"] for c in await sandbox.admin.connections() if c["auth_key_id"] == key_id}
    assert addresses == {"127.0.0.1", "127.0.0.2"}


async def test_one_key_from_two_addresses_one_after_the_other_is_fine(sandbox, tmp_path, phone):
    async with sandbox.logged_in(phone, tmp_path) as client:
        session = client.session
    await ping_from_elsewhere(sandbox, session)
    async with sandbox.logged_in(phone, tmp_path) as client:
        await client.invoke(raw.functions.updates.GetState())


async def test_a_key_that_is_only_named_and_not_proved_is_not_harmed(sandbox, tmp_path, phone):
    async with sandbox.logged_in(phone, tmp_path) as client:
        host, port = sandbox.facts["host"], sandbox.facts["port"]
        reader, writer = await asyncio.open_connection(host, port, local_addr=("127.0.0.2", 0))
        packet = client.session.auth_key_id + bytes(16 + 64)
        writer.write(b"\xef" + bytes([len(packet) // 4]) + packet)
        assert await reader.read() == b""
        writer.close()
        await client.invoke(raw.functions.updates.GetState())


async def test_too_many_connections_from_one_address_are_turned_away(phone, tmp_path):
    running = RunningSandbox.start("--connections-per-address", "1")
    async with running.logged_in(phone, tmp_path):
        reader, writer = await asyncio.open_connection(running.facts["host"], running.facts["port"])
        writer.write(b"\xee\xee\xee\xee")
        answer = await reader.read()
        writer.close()
    running.stop()
    assert answer == (4).to_bytes(4, "little") + (-429).to_bytes(4, "little", signed=True)
