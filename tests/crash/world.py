"""A Telegram, a database, accounts and channels, and worker processes that may be killed."""

import asyncio
import atexit
import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
import time
import zipfile
from collections import Counter
from collections.abc import AsyncIterator, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import asyncpg
from connection_overlaps import overlaps
from contents import Contents
from postings import cut_zip, posted_sets

from worker.clock import SystemClock
from worker.config.settings import Settings
from worker.fleet.governance import open_governance
from worker.fleet.process import telegram_server
from worker.fleet.setup import Login, log_in
from worker.sandbox.admin_client import SandboxAdmin
from worker.store import channels
from worker.store.database import Database
from worker.store.sealing import Sealer

ROOT = Path(__file__).resolve().parents[2]
PHONES = ("+10000000001", "+10000000002")
SECRET_KEY = "A" * 43 + "="
LEASE_SECONDS = 2.0
START_SECONDS = 30.0
DRAIN_SECONDS = 30.0


class Processes:
    """Starts commands by forking from a process that has everything imported."""

    def __init__(self) -> None:
        self._server = subprocess.Popen(
            [sys.executable, str(Path(__file__).parent / "fork_server.py")],
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self._asking = threading.Lock()

    @property
    def is_free(self) -> bool:
        """Whether it can be used: nobody waits for an answer that may never come."""
        return self._server.poll() is None and not self._asking.locked()

    def ask(self, **what) -> dict:
        with self._asking:
            self._server.stdin.write(json.dumps(what) + "\n")
            self._server.stdin.flush()
            return json.loads(self._server.stdout.readline())

    def start(self, *argv: str, env: dict[str, str], log: Path) -> int:
        return self.ask(do="start", argv=argv, env=env, log=str(log))["pid"]

    def wait(self, pid: int) -> dict:
        return self.ask(do="wait", pid=pid)

    def close(self) -> None:
        self._server.kill()
        self._server.wait(timeout=10)


_processes: list[Processes] = []


def processes() -> Processes:
    """One for all worlds of this test process: what it imports takes longer than most of them."""
    if not _processes or not _processes[-1].is_free:
        _processes.append(Processes())
        atexit.register(_processes[-1].close)
    return _processes[-1]


class Workers:
    """The worker processes of one world, and their logs."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._processes = processes()
        self.logs: list[Path] = []

    def start(self, *argv: str, env: dict[str, str]) -> int:
        log = self._folder / f"run-{len(self.logs):04d}.log"
        self.logs.append(log)
        return self._processes.start(*argv, env=env, log=log)

    def wait(self, pid: int) -> dict:
        return self._processes.wait(pid)

    def until_stopped(self, pid: int) -> dict:
        return self._processes.ask(do="until_stopped", pid=pid)


@dataclass
class World:
    """Everything a crash test needs, and the invariants that must hold whatever was killed."""

    folder: Path
    database_url: str
    facts: dict
    admin: SandboxAdmin
    workers: Workers
    telegram: "Telegram"
    sources: list[int] = field(default_factory=list)
    destination: int = 0
    posted: int = 0
    contents: Contents = field(default_factory=Contents)
    settings: dict[str, str] = field(default_factory=dict)

    def env(self, faults: str = "", **more: str) -> dict[str, str]:
        return {
            "WORKER_DATABASE_URL": self.database_url,
            "WORKER_SECRET_KEY": SECRET_KEY,
            "WORKER_DATA_DIR": str(self.folder / "data"),
            "WORKER_TELEGRAM__API_ID": "1",
            "WORKER_TELEGRAM__API_HASH": "0123456789abcdef0123456789abcdef",
            "WORKER_TELEGRAM__HOST": self.facts["host"],
            "WORKER_TELEGRAM__PORT": str(self.facts["port"]),
            "WORKER_TELEGRAM__PUBLIC_KEY": self.facts["public_key"],
            "WORKER_TELEGRAM__CALL_TIMEOUT_SECS": "5",
            "WORKER_LEASE__LEASE_SECS": str(LEASE_SECONDS),
            "WORKER_LEASE__HEARTBEAT_SECS": "0.3",
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
        started = time.monotonic()
        while True:
            ended = await self.run("run", "--once", *argv)
            assert ended == {"exit": 0}, self.workers.logs[-1].read_text()
            left = await self._unfinished()
            if not left:
                return
            assert time.monotonic() - started < DRAIN_SECONDS, (left, self.workers.logs[-1].read_text())

    async def _unfinished(self) -> dict[str, int]:
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
        connection = await asyncpg.connect(self.database_url)
        try:
            return await connection.fetch(query, *arguments)
        finally:
            await connection.close()

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

    async def check_invariants(self) -> None:
        posted = await posted_sets(self.admin, self.sources)
        published = [
            m for m in await self.admin.messages(self.destination) if m["document_id"] and not m["deleted"]
        ]
        messages = self.contents.check(published, self.contents.expected(posted))
        rows = await self.fetch(
            """
            SELECT p.content_hash, p.part_count, p.file_count, p.metadata,
                   array_agg(pp.message_id ORDER BY pp.ordinal) AS ids
            FROM packages p JOIN package_parts pp ON pp.package_id = p.id GROUP BY p.id
            """
        )
        assert {row["content_hash"]: row["ids"] for row in rows} == messages, "rows and messages disagree"
        for row in rows:
            assert len(row["ids"]) == row["part_count"]
            assert row["metadata"] == "complete"
            assert row["file_count"] == 1
        states = Counter(r["state"] for r in await self.fetch("SELECT state FROM archive_sets"))
        assert set(states) <= {"indexed", "duplicate"}, states
        assert sum(states.values()) == len(posted)
        assert await self._unfinished() == {}
        assert [call for call in await self.admin.calls() if call["early"]] == [], "a flood wait was not kept"
        workspace = self.folder / "data" / "workspace"
        assert not workspace.exists() or list(workspace.iterdir()) == [], "files were left in the workspace"
        await self.check_connections()
        await self._no_secret_in_logs()

    async def check_connections(self) -> None:
        """No key was connected from two places at once, and none was lost to that."""
        assert overlaps(await self.admin.connections()) == []
        states = await self.fetch("SELECT DISTINCT state, state_reason FROM accounts")
        assert not [row for row in states if "DUPLICATED" in (row["state_reason"] or "")]

    async def _no_secret_in_logs(self) -> None:
        secrets = [*PHONES, SECRET_KEY, "0123456789abcdef0123456789abcdef", "12345\n"]
        for log in self.workers.logs:
            text = log.read_text()
            assert [secret for secret in secrets if secret in text] == [], log


class Telegram:
    """A loopback Telegram that may be killed; it comes back on the same ports with the same ledger."""

    def __init__(self, folder: Path, *options: str) -> None:
        self._folder, self._options = folder, options
        self._processes = processes()
        self._starts = 0
        self.facts = self._start()

    def _start(self) -> dict:
        self._starts += 1
        log = self._folder.with_name(f"{self._folder.name}-{self._starts}.log")
        arguments = ("sandbox", "--json", "--state", str(self._folder), *self._options)
        self._pid = self._processes.start(*arguments, env={}, log=log)
        deadline = time.monotonic() + START_SECONDS
        while time.monotonic() < deadline:
            lines = log.read_text().splitlines(keepends=True) if log.exists() else []
            for line in lines:
                if line.startswith('{"host"') and line.endswith("\n"):
                    return json.loads(line)
            time.sleep(0.02)
        raise TimeoutError(log.read_text())

    def restart(self) -> None:
        """Kill it where it stands, and start it again."""
        os.kill(self._pid, signal.SIGKILL)
        self._processes.wait(self._pid)
        self.facts = self._start()

    def close(self) -> None:
        os.kill(self._pid, signal.SIGTERM)
        # An answer that somebody else still waits for would be taken for ours.
        if self._processes.is_free:
            self._processes.wait(self._pid)


@contextlib.asynccontextmanager
async def open_world(
    folder: Path, database_url: str, *sandbox_options: str, phones: Sequence[str] = PHONES
) -> AsyncIterator[World]:
    """Some accounts, two sources that all can read, one destination that all can write to."""
    workers = Workers(folder)
    with contextlib.closing(Telegram(folder / "telegram", *sandbox_options)) as telegram:
        facts = telegram.facts
        admin = SandboxAdmin(facts["host"], facts["admin_port"])
        world = World(folder, database_url, facts, admin, workers, telegram)
        for phone in phones:
            await admin.create_account(phone, "Ada")
        for title in ("First", "Second"):
            world.sources.append((await admin.create_channel(title, members=list(phones)))["channel_id"])
        world.destination = (await admin.create_channel("Library", admins=list(phones)))["channel_id"]
        await log_in_to(world, phones)
        yield world


async def log_in_to(world: World, phones: Sequence[str] = PHONES) -> None:
    """Log these accounts in on the world's database, and choose its channels."""
    settings = Settings.model_validate(
        {
            "telegram": {
                "api_id": 1,
                "api_hash": "0" * 32,
                "host": world.facts["host"],
                "port": world.facts["port"],
                "public_key": world.facts["public_key"],
            },
            "rate_limits": {"profile": "relaxed"},
        }
    )
    database = Database(world.database_url)
    sealer = Sealer(bytes(32))

    async def code() -> str:
        return "12345"

    async with open_governance(database, settings.rate_limits, SystemClock()) as governance:
        login = Login(database, sealer, telegram_server(settings), governance, 10)
        for phone in phones:
            await log_in(login, phone, ask_code=code, ask_password=code)
        for source in world.sources:
            await channels.make_source(database, source)
        await channels.make_destination(database, world.destination)
    await database.close()
