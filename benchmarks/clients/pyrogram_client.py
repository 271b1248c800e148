"""Kurigram or Pyrogram, as installed, by its own high-level calls."""

import asyncio
import hashlib
import sys
from base64 import b64decode
from pathlib import Path

import pyrogram
from conversation import begin, converse
from pyrogram import Client
from pyrogram.connection import connection
from pyrogram.crypto import rsa

IS_KURIGRAM = hasattr(pyrogram.Client, "send_phone_number_code")


def trust(given):
    lines = Path(given["public_key"]).read_text().splitlines()
    der = b64decode("".join(line for line in lines if not line.startswith("-")))
    start = der.index(b"\x02\x82\x01\x01\x00") + 5
    modulus = int.from_bytes(der[start : start + 256], "big")
    rsa.server_public_keys[given["fingerprint"]] = rsa.PublicKey(modulus, 65537)


def client_for(given):
    trust(given)
    options = {"api_id": 1, "api_hash": "0" * 32, "in_memory": True, "no_updates": True}
    if not IS_KURIGRAM:
        connection.DataCenter = lambda *_: (given["host"], given["port"])
        return Client("bench", **options)

    class Here(connection.Connection):
        def __init__(self, **arguments):
            super().__init__(**{**arguments, "server_address": given["host"], "port": given["port"]})

    return Client("bench", connection_factory=Here, **options)


async def main(given):
    client = client_for(given)
    await client.connect()
    send = client.send_phone_number_code if IS_KURIGRAM else client.send_code
    sent = await send(given["phone"])
    await client.sign_in(given["phone"], sent.phone_code_hash, given["code"])
    client.me = await client.get_me()
    await client.initialize()
    async for _ in client.get_dialogs():
        pass
    chat = int(f"-100{given['channel_id']}")
    message = await client.get_messages(chat, given["message_id"])

    async def down(command):
        await client.download_media(message, command["out"])

    async def up(command):
        await client.save_file(given["file"])

    async def publish(command):
        await client.download_media(message, command["out"])
        with Path(command["out"]).open("rb") as file:
            digest = (await asyncio.to_thread(hashlib.file_digest, file, "sha256")).hexdigest()
        await client.send_document(chat, command["out"], force_document=True)
        return digest

    await converse({"down": down, "up": up, "publish": publish})
    await client.stop()


sys.setrecursionlimit(10_000)
begin(main)
