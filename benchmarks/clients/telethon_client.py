"""Telethon, as installed; and with senders of its own in parallel, the way its users speed it up."""

import asyncio
import hashlib
from pathlib import Path

import rsa
from conversation import begin, converse
from telethon import TelegramClient, helpers
from telethon.crypto import rsa as trusted
from telethon.network import ConnectionTcpAbridged, MTProtoSender
from telethon.sessions import MemorySession
from telethon.tl.alltlobjects import LAYER
from telethon.tl.functions import InvokeWithLayerRequest
from telethon.tl.functions.help import GetConfigRequest
from telethon.tl.functions.upload import GetFileRequest, SaveBigFilePartRequest
from telethon.tl.types import InputDocumentFileLocation, InputFileBig

SENDERS, DOWN, UP = 8, 512 * 1024, 512 * 1024


async def more_senders(client):
    """Connections of their own with the client's key, as the well-known fast-transfer recipes make them."""
    senders = []
    for _ in range(SENDERS):
        sender = MTProtoSender(client.session.auth_key, loggers=client._log)
        await sender.connect(
            client._connection(
                client.session.server_address,
                client.session.port,
                client.session.dc_id,
                loggers=client._log,
            )
        )
        client._init_request.query = GetConfigRequest()
        await sender.send(InvokeWithLayerRequest(LAYER, client._init_request))
        senders.append(sender)
    return senders


async def spread(senders, count, work):
    """Each sender takes every n-th part, one after the other."""

    async def run(sender, first):
        for number in range(first, count, len(senders)):
            await work(sender, number)

    await asyncio.gather(*(run(sender, first) for first, sender in enumerate(senders)))


class Mover:
    """A logged-in client and the document it is to fetch."""

    def __init__(self, client, message, senders):
        self._client, self._message, self._senders = client, message, senders

    async def fetch(self, path):
        if not self._senders:
            await self._client.download_media(self._message, path)
            return
        document = self._message.document
        place = InputDocumentFileLocation(document.id, document.access_hash, document.file_reference, "")
        with Path(path).open("wb") as file:

            async def take(sender, number):
                answer = await sender.send(GetFileRequest(place, number * DOWN, DOWN))
                file.seek(number * DOWN)
                file.write(answer.bytes)

            await spread(self._senders, -(-document.size // DOWN), take)

    async def send(self, path):
        if not self._senders:
            return await self._client.upload_file(path)
        size, file_id = Path(path).stat().st_size, helpers.generate_random_long()
        count = -(-size // UP)
        with Path(path).open("rb") as file:

            async def give(sender, number):
                file.seek(number * UP)
                await sender.send(SaveBigFilePartRequest(file_id, number, count, file.read(UP)))

            await spread(self._senders, count, give)
        return InputFileBig(file_id, count, Path(path).name)


async def log_in(given):
    key = rsa.PublicKey.load_pkcs1(Path(given["public_key"]).read_bytes())
    trusted._server_keys[trusted._compute_fingerprint(key)] = (key, False)
    session = MemorySession()
    session.set_dc(given["dc_id"], given["host"], given["port"])
    client = TelegramClient(session, 1, "0" * 32, connection=ConnectionTcpAbridged, receive_updates=False)
    await client.connect()
    await client.send_code_request(given["phone"])
    await client.sign_in(given["phone"], given["code"])
    await client.get_dialogs()
    return client


async def main(given):
    client = await log_in(given)
    chat = await client.get_entity(int(f"-100{given['channel_id']}"))
    message = await client.get_messages(chat, ids=given["message_id"])
    senders = await more_senders(client) if given["parallel"] else []
    mover = Mover(client, message, senders)

    async def down(command):
        await mover.fetch(command["out"])

    async def up(command):
        await mover.send(given["file"])

    async def publish(command):
        await mover.fetch(command["out"])
        with Path(command["out"]).open("rb") as file:
            digest = (await asyncio.to_thread(hashlib.file_digest, file, "sha256")).hexdigest()
        await client.send_file(chat, await mover.send(command["out"]), force_document=True)
        return digest

    await converse({"down": down, "up": up, "publish": publish})
    for sender in senders:
        await sender.disconnect()
    await client.disconnect()


begin(main)
