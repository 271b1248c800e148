# ruff: noqa: E402 - the loop comes first
"""Pyrogram or Kurigram, as installed, walks through what a client does, by its high-level methods alone.

Takes one JSON object as its argument and prints one with what it saw.
"""

import asyncio
import hashlib
import json
import os
import sys
from base64 import b64decode
from pathlib import Path

# Pyrogram asks for the loop when it is imported; from Python 3.14 on there is none unless somebody sets one.
loop = asyncio.new_event_loop()
asyncio.set_event_loop(loop)

import pyrogram
from pyrogram import Client, enums, errors, filters
from pyrogram.connection import connection, transport
from pyrogram.crypto import rsa

IS_KURIGRAM = hasattr(pyrogram.Client, "send_phone_number_code")


def trust(path: str, fingerprint: int) -> None:
    """Read modulus and exponent out of the PEM with nothing but the standard library."""
    lines = Path(path).read_text().splitlines()
    der = b64decode("".join(line for line in lines if not line.startswith("-")))
    start = der.index(b"\x02\x82\x01\x01\x00") + 5
    modulus = int.from_bytes(der[start : start + 256], "big")
    rsa.server_public_keys[fingerprint] = rsa.PublicKey(modulus, 65537)


def point_at(given: dict) -> dict:
    """Return the options that make a client find the server where it expects Telegram."""
    if not IS_KURIGRAM:
        kinds = {"abridged": transport.TCPAbridged, "intermediate": transport.TCPIntermediate}
        connection.DataCenter = lambda *_: (given["host"], given["port"])
        connection.TCPAbridged = kinds[given["transport"]]
        return {}

    class Here(connection.Connection):
        def __init__(self, **arguments):
            super().__init__(**{**arguments, "server_address": given["host"], "port": given["port"]})

    kinds = {
        "abridged": transport.TCPAbridged,
        "intermediate": transport.TCPIntermediate,
        "padded": transport.TCPIntermediatePadded,
        "obfuscated": transport.TCPAbridgedO,
        "full": transport.TCPFull,
    }
    return {"connection_factory": Here, "protocol_factory": kinds[given["transport"]]}


async def log_in(client: Client, given: dict, phone: str) -> None:
    await client.connect()
    send = client.send_phone_number_code if IS_KURIGRAM else client.send_code
    sent = await send(phone)
    try:
        if not await client.sign_in(phone, sent.phone_code_hash, given["code"]):
            await client.sign_up(phone, sent.phone_code_hash, "Pyro", "Gram")
    except errors.SessionPasswordNeeded:
        await client.check_password(given["password"])
    await client.disconnect()
    await client.start()


async def oldest_first(client: Client, chat_id: int) -> list[int]:
    """Kurigram has a word for it; Pyrogram asks for the one message above the last, again and again."""
    if IS_KURIGRAM:
        return [m.id async for m in client.get_chat_history(chat_id, reverse=True)]
    ids = [0]
    while page := [m.id async for m in client.get_chat_history(chat_id, 1, offset=-1, offset_id=ids[-1] + 1)]:
        ids += page
    return ids[1:]


async def walk(given: dict) -> dict:
    trust(given["public_key"], given["fingerprint"])
    options = {"api_id": 1, "api_hash": "0" * 32, "workdir": given["workdir"], **point_at(given)}
    client, watcher = Client("client", **options), Client("watcher", **options)
    heard = asyncio.get_running_loop().create_future()

    @watcher.on_message(filters.text)
    async def remember(_, message):
        if not heard.done():
            heard.set_result(message.text)

    await log_in(client, given, given["phone"])
    await log_in(watcher, given, given["other_phone"])
    seen = {"me": (await client.get_me()).id}

    channel = await client.create_channel("Archives", "about")
    link = await client.export_chat_invite_link(channel.id)
    await watcher.join_chat(getattr(link, "invite_link", link))
    text = await client.send_message(channel.id, "hello there")
    seen["update"] = await asyncio.wait_for(heard, 20)

    data = os.urandom(given["size"])
    source = Path(given["workdir"]) / "pyrogram.zip"
    source.write_bytes(data)
    sent = await client.send_document(channel.id, str(source), caption="a file")
    seen["uploaded"] = hashlib.sha256(data).hexdigest()
    seen_by_watcher = await watcher.get_messages(channel.id, sent.id)
    target = Path(given["workdir"]) / "fetched.zip"
    await watcher.download_media(seen_by_watcher, file_name=str(target))
    seen["downloaded"] = hashlib.sha256(target.read_bytes()).hexdigest()

    seen["edited"] = (await client.edit_message_text(channel.id, text.id, "hello again")).text
    seen["listed"] = [m.id async for m in client.get_chat_history(channel.id)]
    seen["reversed"] = await oldest_first(client, channel.id)
    documents = enums.MessagesFilter.DOCUMENT
    seen["found"] = [m.id async for m in client.search_messages(channel.id, filter=documents)]
    await client.delete_messages(channel.id, [text.id])
    seen["after_delete"] = [m.id async for m in client.get_chat_history(channel.id)]
    seen["sent"], seen["text"] = sent.id, text.id
    seen["dialogs"] = [d.chat.title async for d in watcher.get_dialogs()]
    await client.log_out()
    await watcher.stop()
    return seen


if __name__ == "__main__":
    sys.stdout.write(json.dumps(loop.run_until_complete(walk(json.loads(sys.argv[1])))))
