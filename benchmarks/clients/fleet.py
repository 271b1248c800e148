"""Our own engine, as the pipeline uses it, without a database: nothing but the transfer is measured."""

import asyncio
import hashlib
import itertools
import os
from pathlib import Path

from conversation import begin, converse

from worker.clock import SystemClock
from worker.errors import RetryableError
from worker.telegram.authorising import request_code, sign_in
from worker.telegram.client import Server, trust_public_key
from worker.telegram.gateway import Gateway
from worker.telegram.transfer import DOWN_BYTES, Download, Upload
from worker.workspace.part_file import PartFile


class Unpaced:
    """Permission for everything at once; a part whose connection broke is asked for again."""

    async def read(self, method, chat, work):
        return await work()

    write = read

    def parts(self, method, narrow):
        return self

    async def part(self, work):
        for _ in range(5):
            try:
                return await work()
            except RetryableError:
                await SystemClock().sleep(0.1)
        return await work()

    async def __aenter__(self):
        return self

    async def __aexit__(self, *_):
        pass


async def main(given):
    trust_public_key(Path(given["public_key"]))
    server = Server(1, "0" * 32, given["host"], given["port"])
    gateway = Gateway(server, permission=Unpaced(), deadline=30)
    await gateway.connect()
    code_hash = await request_code(gateway, server, given["phone"])
    await sign_in(gateway, given["phone"], code_hash, given["code"])
    channels = await gateway.channels()
    (source,) = [each.ref for each in channels if each.ref.telegram_id == given["channel_id"]]
    random_ids = itertools.count(1)

    def nothing(_):
        pass

    async def fetch(path, *digests):
        file = PartFile(path, given["size"], unit=DOWN_BYTES, identity="", digests=digests)
        path.with_suffix(".map").unlink()
        try:
            await Download(
                gateway,
                lambda: gateway.document(source, given["message_id"], given["document_id"]),
                file,
                nothing,
            ).run()
            await asyncio.to_thread(file.hash_what_is_there)
            assert file.is_complete
        finally:
            file.close()

    async def send(path):
        descriptor = os.open(path, os.O_RDONLY)

        def fill(offset, buffer):
            os.preadv(descriptor, [buffer], offset)

        try:
            size = os.fstat(descriptor).st_size
            return await Upload(gateway, name="a.zip", size=size, fill=fill, moved=nothing).run()
        finally:
            os.close(descriptor)

    async def down(command):
        await fetch(Path(command["out"]))

    async def up(command):
        await send(Path(given["file"]))

    async def publish(command):
        path = Path(command["out"])
        digest = hashlib.sha256()
        await fetch(path, digest)
        uploaded = await send(path)
        await gateway.send_document(
            source, uploaded, caption="", random_id=next(random_ids), mime_type="application/zip"
        )
        return digest.hexdigest()

    try:
        await converse({"down": down, "up": up, "publish": publish})
    finally:
        await gateway.close()


begin(main)
