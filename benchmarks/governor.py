"""What the governor adds to the CPU time of a transfer.

    python benchmarks/governor.py [--mib 256] [--rounds 3]

Downloads a file and uploads it again over a real connection to the loopback Telegram, in turn with the
governor and with a permission that lets everything pass; only this process's own CPU time counts, so that a
busy machine disturbs neither side. Runs differ by about as much as is allowed, so what the governor does for
each part, and what its watch for blocks takes per second, is measured alone as well. That sum decides: exits
1 unless it is below 2 %.
"""

import argparse
import asyncio
import contextlib
import statistics
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from worker.clock import SystemClock
from worker.config.settings import Settings
from worker.demo.telegram import CODE, open_telegram
from worker.demo.world import demo_settings
from worker.fleet.governance import open_governance
from worker.fleet.process import telegram_server
from worker.fleet.setup import Login, log_in
from worker.store import accounts, migrations
from worker.store.database import Database
from worker.store.embedded import open_cluster
from worker.store.sealing import Sealer
from worker.telegram.gateway import Gateway
from worker.telegram.transfer import DOWN_BYTES, UP_BYTES, Download, Upload

MIB = 1024 * 1024
PHONE = "+10000000001"
PROMISED = 0.02
PARTS = 100_000
WATCHED_SECONDS = 15.0


class Pass:
    """Permission for everything, at once and unrecorded."""

    async def read(self, method, chat, work):  # noqa: ANN001, ANN201, ARG002  # the gateway's protocol
        return await work()

    write = read

    def parts(self, method, narrow):  # noqa: ANN001, ANN201, ARG002
        return self

    async def part(self, work):  # noqa: ANN001, ANN201
        return await work()

    async def __aenter__(self):  # noqa: ANN204
        return self

    async def __aexit__(self, *error):  # noqa: ANN002, ANN204
        return None


@contextlib.asynccontextmanager
async def ungoverned(database, settings, clock):  # noqa: ANN001, ANN201, ARG001  # as open_governance
    class Free:
        def permission(self, account_id):  # noqa: ANN001, ANN202, ARG002
            return Pass()

    yield Free()


class Nowhere:
    """Takes the last bytes of a file and keeps none of them."""

    def __init__(self, whole: int, size: int) -> None:
        self._parts = range((whole - size) // DOWN_BYTES, whole // DOWN_BYTES)
        self.received = 0

    def missing(self) -> range:
        return self._parts

    def take(self, offset: int, data: memoryview) -> None:  # noqa: ARG002
        self.received += len(data)


class Bench:
    """An account, a channel with one file, and a database."""

    def __init__(self, settings: Settings, database: Database, channel: int, message: int, mib: int) -> None:
        self.settings, self.database, self.channel, self.message = settings, database, channel, message
        self.size = mib * MIB
        self.sealer = Sealer(bytes(32))
        self.account = 0

    async def log_in(self) -> None:
        async def code() -> str:
            return CODE

        async with open_governance(self.database, self.settings.rate_limits, SystemClock()) as governance:
            login = Login(self.database, self.sealer, telegram_server(self.settings), governance, 15)
            account = await log_in(login, PHONE, ask_code=code, ask_password=code)
        self.account = account.id

    async def transfer(self, opening) -> tuple[float, float]:  # noqa: ANN001  # open_governance or ungoverned
        """CPU seconds and seconds of one download and one upload."""
        session = await accounts.load_session(self.database, self.sealer, self.account)
        async with opening(self.database, self.settings.rate_limits, SystemClock()) as governance:
            gateway = Gateway(
                telegram_server(self.settings),
                permission=governance.permission(self.account),
                deadline=30,
                dc_id=session.dc_id,
                auth_key=session.auth_key,
            )
            await gateway.connect()
            try:
                channel = next(c.ref for c in await gateway.channels() if c.ref.telegram_id == self.channel)
                found = await gateway.messages(channel, [self.message])
                document = found[self.message].document
                assert document is not None
                await self._move(gateway, document, DOWN_BYTES)  # opens the file connection
                started, cpu = time.monotonic(), time.process_time()
                await self._move(gateway, document, self.size)
                return time.process_time() - cpu, time.monotonic() - started
            finally:
                await gateway.close()

    async def _move(self, gateway: Gateway, document, size: int) -> None:  # noqa: ANN001
        async def find():  # noqa: ANN202
            return document

        nowhere = Nowhere(document.size, size)
        await Download(gateway, find, nowhere, lambda _: None).run()
        assert nowhere.received == size
        await Upload(gateway, name="copy.bin", size=size, fill=lambda *_: None, moved=lambda _: None).run()

    async def own_work(self) -> float:
        """CPU seconds that the governor itself takes for one part."""

        async def nothing() -> None:
            return None

        async def measure(permission) -> float:  # noqa: ANN001
            async with permission.parts("upload.getFile", lambda: None) as parts:
                await parts.part(nothing)
                started = time.process_time()
                for _ in range(PARTS):
                    await parts.part(nothing)
                return time.process_time() - started

        async with open_governance(self.database, self.settings.rate_limits, SystemClock()) as governance:
            governed = await measure(governance.permission(self.account))
        return (governed - await measure(Pass())) / PARTS

    async def watch(self) -> float:
        """CPU seconds per second that hearing of blocks and writing counts takes."""
        async with (
            open_governance(self.database, self.settings.rate_limits, SystemClock()) as governance,
            governance.permission(self.account).parts("upload.getFile", lambda: None) as parts,
        ):
            await parts.permit()
            await asyncio.sleep(2)  # the connections are made, the first clean-up is done
            started, cpu = time.monotonic(), time.process_time()
            while time.monotonic() - started < WATCHED_SECONDS:
                parts.done()  # there is something to write each time
                await asyncio.sleep(0.5)
            return (time.process_time() - cpu) / (time.monotonic() - started)


async def run(folder: Path, url: str, mib: int, rounds: int) -> int:
    database = Database(url)
    with open_telegram(folder) as telegram:
        await telegram.admin.create_account(PHONE, "Ada")
        made = await telegram.admin.create_channel("Files", admins=[PHONE])
        path = folder / "file.bin"
        with path.open("wb") as file:
            file.truncate(mib * MIB)
        posted = await telegram.admin.post_document(made["channel_id"], path, path.name)
        settings = demo_settings(folder).settings
        bench = Bench(settings, database, made["channel_id"], posted["message_id"], mib)
        await bench.log_in()
        governed, free, durations = [], [], []
        for number in range(rounds):
            # Who goes first changes, so that neither always meets the warmer machine.
            for opening in (open_governance, ungoverned) if number % 2 else (ungoverned, open_governance):
                seconds, duration = await bench.transfer(opening)
                durations.append(duration)
                (governed if opening is open_governance else free).append(seconds)
                print(f"  {opening.__name__:16} {seconds:6.2f} CPU s in {duration:.1f} s", flush=True)
        per_part, watch = await bench.own_work(), await bench.watch()
    await database.close()
    with_it, without = statistics.median(governed), statistics.median(free)
    # The hashes of a range are asked for beside it.
    parts = 2 * (mib * MIB // DOWN_BYTES) + mib * MIB // UP_BYTES
    own, watching = per_part * parts, watch * statistics.median(durations)
    share = (own + watching) / without
    print(f"{mib} MiB down and up: {without:.2f} CPU s without the governor, {with_it:.2f} with it")
    print(f"  difference of the medians {with_it / without - 1:+.2%}")
    print(
        f"  its work: {per_part * 1e6:.2f} µs for each of {parts} parts, {own / without:.3%} of the transfer"
    )
    print(f"  its watch: {watch * 1e3:.2f} ms per second, {watching / without:.2%} of the transfer")
    print(f"  both: {share:.2%} (below {PROMISED:.0%})")
    return 0 if share < PROMISED else 1


def main() -> int:
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--mib", type=int, default=256)
    arguments.add_argument("--rounds", type=int, default=3)
    chosen = arguments.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        # For root, PostgreSQL runs as another user, who has to pass through here.
        folder.chmod(0o711)
        with open_cluster(folder / "postgres") as address:
            migrations.upgrade(address)
            return asyncio.run(run(folder, address, chosen.mib, chosen.rounds))


if __name__ == "__main__":
    sys.exit(main())
