"""Telethon, as installed, walks through what a client does. Runs in its own virtual environment.

Takes one JSON object as its argument and prints one with what it saw.
"""

import asyncio
import hashlib
import json
import os
import sys
from pathlib import Path

import rsa
from telethon import TelegramClient, errors, events, functions, types
from telethon.crypto import rsa as trusted
from telethon.network import (
    ConnectionTcpAbridged,
    ConnectionTcpFull,
    ConnectionTcpIntermediate,
    ConnectionTcpObfuscated,
)
from telethon.sessions import MemorySession

TRANSPORTS = {
    "abridged": ConnectionTcpAbridged,
    "intermediate": ConnectionTcpIntermediate,
    "obfuscated": ConnectionTcpObfuscated,
    "full": ConnectionTcpFull,
}


def trust(path: str) -> None:
    key = rsa.PublicKey.load_pkcs1(Path(path).read_bytes())
    trusted._server_keys[trusted._compute_fingerprint(key)] = (key, False)


def client_for(given: dict) -> TelegramClient:
    session = MemorySession()
    session.set_dc(given["dc_id"], given["host"], given["port"])
    return TelegramClient(session, 1, "0" * 32, connection=TRANSPORTS[given["transport"]], request_retries=2)


async def log_in(client: TelegramClient, given: dict, phone: str) -> None:
    await client.connect()
    sent = await client.send_code_request(phone)
    try:
        await client.sign_in(phone, given["code"])
    except errors.SessionPasswordNeededError:
        await client.sign_in(password=given["password"])
    except errors.PhoneNumberUnoccupiedError:
        await client(functions.auth.SignUpRequest(phone, sent.phone_code_hash, "Tele", "Thon"))


async def walk(given: dict) -> dict:
    trust(given["public_key"])
    seen: dict = {}
    client, watcher = client_for(given), client_for(given)
    await log_in(client, given, given["phone"])
    await log_in(watcher, given, given["other_phone"])
    seen["me"] = (await client.get_me()).id

    created = await client(functions.channels.CreateChannelRequest("Archives", "about", broadcast=True))
    channel = created.chats[0]
    invite = await client(functions.messages.ExportChatInviteRequest(channel))
    await watcher(functions.messages.ImportChatInviteRequest(invite.link.split("+")[1]))
    heard = asyncio.get_running_loop().create_future()

    @watcher.on(events.NewMessage)
    async def remember(event):
        if not heard.done():
            heard.set_result(event.raw_text)

    await watcher.get_dialogs()
    text = await client.send_message(channel, "hello there")
    seen["update"] = await asyncio.wait_for(heard, 20)

    data = os.urandom(given["size"])
    source = Path(given["workdir"]) / "telethon.zip"
    source.write_bytes(data)
    sent = await client.send_file(channel, str(source), caption="a file", force_document=True)
    seen["uploaded"] = hashlib.sha256(data).hexdigest()
    fetched = await watcher.download_media(await first(watcher, channel.title), bytes)
    seen["downloaded"] = hashlib.sha256(fetched).hexdigest()

    edited = await client.edit_message(channel, text, "hello again")
    seen["edited"] = edited.message
    seen["listed"] = [m.id async for m in client.iter_messages(channel)]
    seen["reversed"] = [m.id async for m in client.iter_messages(channel, reverse=True)]
    documents = types.InputMessagesFilterDocument()
    seen["found"] = [m.id async for m in client.iter_messages(channel, filter=documents)]
    await client.delete_messages(channel, [text.id])
    seen["after_delete"] = [m.id async for m in client.iter_messages(channel)]
    seen["sent"] = sent.id
    seen["text"] = text.id
    seen["dialogs"] = [d.name async for d in watcher.iter_dialogs()]
    await client.log_out()
    await watcher.disconnect()
    return seen


async def first(watcher: TelegramClient, title: str):
    dialogs = await watcher.get_dialogs()
    entity = next(d.entity for d in dialogs if d.name == title)
    async for message in watcher.iter_messages(entity, filter=types.InputMessagesFilterDocument()):
        return message
    return None


if __name__ == "__main__":
    sys.stdout.write(json.dumps(asyncio.run(walk(json.loads(sys.argv[1])))))
