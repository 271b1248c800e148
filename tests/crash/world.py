"""A Telegram, a database, accounts and channels, and worker processes that may be killed."""

import asyncio
import contextlib
import itertools
import os
import time
import zipfile
from collections.abc import AsyncIterator, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import asyncpg
import invariants
from asking import Asker
from contents import Contents
from hang_guard import HANG_SECONDS, until
from loopback_telegram import Telegram
from postings import cut_zip
from settled import Chosen, log_in_to, settle
from worker_processes import STARVED, Workers

from worker.sandbox.admin_client import SandboxAdmin
from worker.store import migrations

PHONES = ("+10000000001", "+10000000002")
SECRET_KEY = "A" * 43 + "="
API_HASH = "0123456789abcdef0123456789abcdef"
LEASE_SECONDS = 2.0
_RUNS = 5


@dataclass
class World:
    """Everything a crash test needs, and the invariants that must hold whatever was killed."""

    folder: Path
    database_url: str
    facts: dict
    admin: SandboxAdmin
    workers: Workers
    telegram: Telegram
    sources: list[int] = field(default_factory=list)
    destination: int = 0
    posted: int = 0
    contents: Contents = field(default_factory=Contents)
    settings: dict[str, str] = field(default_factory=dict)
    # Nothing is killed: no lease is to run out, and a busy machine ends none.
    calm: bool = False
    asker: Asker = field(default_factory=Asker)

    @property
    def secrets(self) -> Sequence[str]:
        """What no log may hold."""
        return (*PHONES, SECRET_KEY, API_HASH, "12345\n")

    def env(self, faults: str = "", **more: str) -> dict[str, str]:
        # Whoever comes after one that is killed waits for as long as its lease lasts.
        self.calm &= "kill=" not in faults
        return {
            "WORKER_DATABASE_URL": self.database_url,
            "WORKER_SECRET_KEY": SECRET_KEY,
            "WORKER_DATA_DIR": str(self.folder / "data"),
            "WORKER_TELEGRAM__API_ID": "1",
            "WORKER_TELEGRAM__API_HASH": API_HASH,
            "WORKER_TELEGRAM__HOST": self.facts["host"],
            "WORKER_TELEGRAM__PORT": str(self.facts["port"]),
            "WORKER_TELEGRAM__PUBLIC_KEY": self.facts["public_key"],
            "WORKER_TELEGRAM__CALL_TIMEOUT_SECS": "5",
            "WORKER_LEASE__LEASE_SECS": str(2 * HANG_SECONDS if self.calm else LEASE_SECONDS),
            "WORKER_LEASE__HEARTBEAT_SECS": "1" if self.calm else "0.3",
            "WORKER_FLEET__BUSY_RETRY_SECS": "0.2",
            "WORKER_FLEET__RETRY_BASE_SECS": "0.2",
            "WORKER_RATE_LIMITS__PROFILE": "relaxed",
            "WORKER_FAULTS": faults,
            **self.settings,
            **more,
        }

    async def run(self, *argv: str, faults: str = "") -> dict:
        pid = self.workers.start(*argv, env=self.env(faults))
        return await asyncio.to_thread(self.workers.wait, pid)

    async def post_archive(self, *sources: int, size: int = 60_000, **options) -> Path:
        """A new zip, posted in each of these sources."""
        self.posted += 1
        path = self.folder / f"archive-{self.posted}.zip"
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr("data.bin", os.urandom(size))
        self.contents.keep(path)
        for source in sources:
            await self.admin.post_document(source, path, path.name, **options)
        return path

    def make_volumes(self, *, count: int = 3, size: int = 60_000) -> list[Path]:
        """A new zip, cut into ``count`` files that are named .001 and so on."""
        self.posted += 1
        return cut_zip(self.folder / f"volumes-{self.posted}.zip", count, os.urandom(size))

    async def post_files(self, source: int, paths: Iterable[Path], **options) -> list[int]:
        """Post these files under their own names; the ids of their messages."""
        paths = list(paths)
        for path in paths:
            self.contents.keep(path)
        posted = [await self.admin.post_document(source, path, path.name, **options) for path in paths]
        return [message["message_id"] for message in posted]

    async def open_forum(self, *topics: str) -> tuple[int, list[int]]:
        """A forum that both accounts read, as a source; its id and those of its topics. General is topic 1."""
        made = await self.admin.create_channel("Forum", members=list(PHONES), forum=True)
        forum = made["channel_id"]
        opened = [(await self.admin.create_topic(forum, title))["topic_id"] for title in topics]
        # Accounts find the forum when they connect; what they find out later stays what it is here.
        await self.fetch(
            "INSERT INTO channels (telegram_id, title, kind, is_source) VALUES ($1, 'Forum', 'forum', true)",
            forum,
        )
        self.sources.append(forum)
        return forum, opened

    async def open_hidden_group(self) -> int:
        """A group, as a source, whose earlier messages the accounts do not see: they joined after one was posted."""
        made = await self.admin.create_channel("Group", broadcast=False, hidden_history=True)
        group = made["channel_id"]
        await self.admin.post_text(group, "before your time")
        for phone in PHONES:
            await self.admin.join(group, phone)
        await self.fetch(
            "INSERT INTO channels (telegram_id, title, kind, is_source) VALUES ($1, 'Group', 'supergroup', true)",
            group,
        )
        self.sources.append(group)
        return group

    async def drain(self, *argv: str) -> None:
        """Run the fleet until everything is dealt with and the dead are buried."""
        deadline = time.monotonic() + HANG_SECONDS
        for runs in itertools.count(1):
            ended = await self.run("run", "--once", *argv)
            assert ended in ({"exit": 0}, STARVED), self.workers.logs[-1].read_text()
            left = await self.unfinished()
            if not left:
                return
            # A single run may take as long as a busy machine needs for it.
            assert runs < _RUNS or time.monotonic() < deadline, (left, self.workers.logs[-1].read_text())

    async def unfinished(self) -> dict[str, int]:
        """What the fleet has yet to deal with, and how much of it."""
        rows = await self.fetch(
            """
            SELECT (SELECT count(*) FROM archive_sets WHERE state IN ('ready', 'claimed', 'published')
                        OR to_prove AND state = 'collecting') AS sets,
                   (SELECT count(*) FROM uploads WHERE state = 'open') AS uploads,
                   (SELECT count(*) FROM disk_reservations) AS reservations,
                   (SELECT count(*) FROM runs WHERE ended_at IS NULL) AS runs,
                   (SELECT count(*) FROM workers WHERE stopped_at IS NULL) AS workers
            """
        )
        return {name: count for name, count in dict(rows[0]).items() if count}

    async def fetch(self, query: str, *arguments) -> list[asyncpg.Record]:
        return await self.asker.fetch(self.database_url, query, *arguments)

    async def until(self, query: str, *arguments) -> None:
        """Wait until this query says yes."""

        async def answer():
            return (await self.fetch(query, *arguments))[0][0]

        await self._until(answer)

    async def _until(self, condition) -> None:
        try:
            await until(condition)
        except TimeoutError as error:
            error.add_note(self.workers.last_words())
            raise

    async def until_hit(self, rule: int, *, times: int = 1) -> None:
        """Wait until so many calls have met this rule of the loopback Telegram."""

        async def hits():
            return (await self.admin.rule_hits())[rule] >= times

        await self._until(hits)

    async def until_called(self, method: str, times: int) -> None:
        """Wait until the loopback Telegram has dealt with so many calls of this method."""

        async def calls():
            return len(await self.admin.calls(method)) >= times

        await self._until(calls)

    async def until_buried(self) -> None:
        """Wait until every dead worker has been silent for longer than its lease."""
        query = (
            "SELECT 1 FROM workers WHERE stopped_at IS NULL AND heartbeat_at > fleet_now() - interval '{} s'"
        )
        while await self.fetch(query.format(LEASE_SECONDS)):
            await asyncio.to_thread(time.sleep, 0.1)

    async def open_operations_chat(self) -> int:
        """A chat that both accounts report to from now on; they have to find it first."""
        made = await self.admin.create_channel("Operations", admins=list(PHONES))
        self.settings["WORKER_OPERATIONS__CHAT"] = str(made["channel_id"])
        return made["channel_id"]

    async def forget_membership(self, phone: str, channel: int) -> None:
        """The account can no longer read the channel."""
        await self.fetch(
            "UPDATE memberships SET can_read = false FROM accounts a, channels c WHERE a.id = account_id"
            " AND c.id = channel_id AND a.phone = $1 AND c.telegram_id = $2",
            phone,
            channel,
        )

    async def forget_everything(self, database_url: str) -> None:
        """Go on with a new database, on which the accounts have been logged in anew."""
        await asyncio.to_thread(migrations.upgrade, database_url)
        self.database_url = database_url
        await log_in_to(self.facts, database_url, Chosen(tuple(self.sources), self.destination), PHONES)

    async def check_invariants(self) -> None:
        await invariants.check(self)

    async def check_connections(self) -> None:
        await invariants.check_connections(self)


@contextlib.asynccontextmanager
async def open_world(
    folder: Path,
    database_url: str,
    *sandbox_options: str,
    phones: Sequence[str] = PHONES,
    calm: bool = False,
) -> AsyncIterator[World]:
    """Some accounts, two sources that all can read, one destination that all can write to."""
    chosen = await settle(folder / "telegram", database_url, phones)
    with contextlib.closing(Telegram(folder / "telegram", *sandbox_options)) as telegram:
        facts = telegram.facts
        admin = SandboxAdmin.announced(facts)
        world = World(folder, database_url, facts, admin, Workers(folder), telegram, calm=calm)
        world.sources += chosen.sources
        world.destination = chosen.destination
        try:
            yield world
        finally:
            await world.asker.close()
            world.workers.end_all()
