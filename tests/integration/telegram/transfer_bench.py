"""An account's gateway on a loopback Telegram, and one document to move."""

import asyncio
import contextlib
import hashlib
import os
import random
import signal
from dataclasses import dataclass
from pathlib import Path

from running_sandbox import RunningSandbox

from worker.clock import SystemClock
from worker.domain.calls import Activity, Call, FloodReport, Verdict
from worker.flow.governor import Governor
from worker.flow.parts import BlockCache, FileParts
from worker.telegram.authorising import request_code, sign_in
from worker.telegram.client import Server, trust_public_key
from worker.telegram.connections import TransferBounds
from worker.telegram.gateway import Gateway
from worker.telegram.tether import LOOSE, Tether
from worker.telegram.transfer import DOWN_BYTES, Download, Upload
from worker.workspace.part_file import PartFile

MIB = 1 << 20


def random_file(path: Path, size: int) -> str:
    """A file of this size with bytes that repeat nowhere at a part's border; its SHA-256."""
    source, digest = random.Random(size), hashlib.sha256()
    with path.open("wb") as file:
        left = size
        while left:
            block = source.randbytes(min(left, MIB))
            digest.update(block)
            file.write(block)
            left -= len(block)
    return digest.hexdigest()


class NoStore:
    """What the governor wants to keep, kept nowhere: floods last as long as they say."""

    async def active_blocks(self):
        return []

    async def record_flood(self, report: FloodReport) -> Verdict:
        return Verdict(report.hold)

    async def record_activity(self, activities: list[Activity], counts) -> None:
        pass


class Permitting:
    """Permission as the fleet's, on a governor without a database."""

    def __init__(self) -> None:
        store, self._clock = NoStore(), SystemClock()
        self._governor = Governor(store, clock=self._clock)
        self._blocks = BlockCache(store, self._clock, trusted_for=float("inf"))
        self._ready = False
        self.narrowed = 0

    async def read(self, method, chat, work):
        for _ in range(20):
            with contextlib.suppress(Exception):
                return await work()
            await self._clock.sleep(0.2)
        return await work()

    async def write(self, method, chat, work):
        return await work()

    def parts(self, method, narrow):
        def narrowed():
            self.narrowed += 1
            narrow()

        return _Parts(self._governor, self._blocks, Call(1, method), self._clock, narrow=narrowed)


class _Parts(FileParts):
    async def __aenter__(self):
        await self._blocks.refresh()
        return await super().__aenter__()


@dataclass
class Desk:
    """One account at work."""

    sandbox: RunningSandbox
    gateway: Gateway
    permission: Permitting
    phone: str
    channel_id: int
    folder: Path

    async def post(self, size: int, **options) -> tuple[dict, str]:
        path = self.folder / f"source-{size}"
        digest = random_file(path, size)
        posted = await self.sandbox.admin.post_document(self.channel_id, path, "a.zip", **options)
        path.unlink()
        return {**posted, "size": size}, digest

    async def channel(self):
        channels = await self.gateway.channels()
        return next(each.ref for each in channels if each.ref.telegram_id == self.channel_id)

    def target(self, posted: dict, name: str = "part-0"):
        digest = hashlib.sha256()
        file = PartFile(
            self.folder / name,
            posted["size"],
            unit=DOWN_BYTES,
            identity=str(posted["document_id"]),
            digests=[digest],
        )
        file.hash_what_is_there()
        return file, digest

    async def download(self, posted: dict, *, moved=lambda _: None, name: str = "part-0") -> str:
        channel = await self.channel()
        file, digest = self.target(posted, name)
        try:
            await Download(
                self.gateway,
                lambda: self.gateway.document(channel, posted["message_id"], posted["document_id"]),
                file,
                moved,
            ).run()
            await asyncio.to_thread(file.hash_what_is_there)
            assert file.is_complete
        finally:
            file.close()
        return digest.hexdigest()

    def upload(self, path: Path, moved=lambda _: None) -> Upload:
        def fill(offset, buffer):
            with path.open("rb", buffering=0) as file:
                assert os.preadv(file.fileno(), [buffer], offset) == len(buffer)

        return Upload(self.gateway, name="b.zip", size=path.stat().st_size, fill=fill, moved=moved)

    async def publish(self, path: Path, moved=lambda _: None) -> str:
        """Upload a file, post it, and return what the ledger says it hashes to."""
        uploaded = await self.upload(path, moved).run()
        await self.send(uploaded)
        return (await self.sandbox.admin.messages(self.channel_id))[-1]["sha256"]

    async def send(self, uploaded):
        return await self.gateway.send_document(
            await self.channel(), uploaded, caption="", random_id=random.getrandbits(62), mime_type="a/b"
        )


@contextlib.asynccontextmanager
async def open_desk(
    sandbox: RunningSandbox,
    phone: str,
    folder: Path,
    *,
    deadline: float = 5,
    port: int | None = None,
    tether: Tether = LOOSE,
    **bounds,
):
    trust_public_key(Path(sandbox.facts["public_key"]))
    await sandbox.admin.create_account(phone, "Ada", premium=True)
    made = await sandbox.admin.create_channel("Archives", admins=[phone])
    server = Server(1, "0" * 32, sandbox.facts["host"], port or sandbox.facts["port"])
    permission = Permitting()
    gateway = Gateway(
        server, permission=permission, deadline=deadline, bounds=TransferBounds(**bounds), tether=tether
    )
    await gateway.connect()
    try:
        code_hash = await request_code(gateway, server, phone)
        await sign_in(gateway, phone, code_hash, "12345")
        yield Desk(sandbox, gateway, permission, phone, made["channel_id"], folder)
    finally:
        await gateway.close()


def stop_hard(pid: int) -> None:
    os.kill(pid, signal.SIGKILL)
