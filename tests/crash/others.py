"""Everybody but the fleet: what they can do in a world, and what they remember of it."""

import asyncio
import hashlib
import io
import zipfile
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path

from postings import cut_zip
from world import PHONES, World
from world_schedule import Deed

from worker.domain.marker import Marker
from worker.errors import FleetError
from worker.store.database import Database
from worker.store.pauses import PauseStore
from worker.store.set_listing import retry_set

STRANGER = "+10000000099"
# The second account is the one that things befall: the first can always go on.
UNLUCKY = PHONES[1]


@dataclass(slots=True)
class Content:
    """What somebody has made: the files that it consists of, in order, by their hashes."""

    name: str
    parts: tuple[str, ...]
    whole: bytes

    @property
    def hash(self) -> bytes:
        return hashlib.sha256(self.whole).digest()


@dataclass(slots=True)
class Others:
    """Everybody but the fleet, and what they remember of what they did."""

    world: World
    contents: list[Content] = field(default_factory=list)
    # What strangers have posted at the destination, as it was, and what people did to messages of the fleet.
    strangers: dict[int, tuple[str, str | None]] = field(default_factory=dict)
    deleted: set[int] = field(default_factory=set)
    edited: set[int] = field(default_factory=set)
    later: list[tuple[int, Path]] = field(default_factory=list)
    topics: list[int] = field(default_factory=list)
    forum: int = 0
    ahead: float = 0.0

    async def do(self, deed: Deed) -> None:
        await DEEDS[deed.what](self, deed.number)

    def source(self, number: int) -> int:
        return self.world.sources[number % len(self.world.sources)]

    def made(self, name: str, *paths: Path) -> list[Path]:
        """Remember that these files, in this order, are a content."""
        data = [path.read_bytes() for path in paths]
        parts = tuple(hashlib.sha256(each).hexdigest() for each in data)
        self.contents.append(Content(name, parts, b"".join(data)))
        return list(paths)

    def archive(self, number: int) -> Path:
        """A file with an archive that nobody has posted before."""
        self.world.posted += 1
        path = self.world.folder / f"kit-{self.world.posted}.zip"
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr("data.bin", bytes_of(number, self.world.posted, 3000 + number % 7 * 9000))
        return self.made(path.name, path)[0]

    def volumes(self, number: int) -> list[Path]:
        """An archive in three files."""
        self.world.posted += 1
        path = self.world.folder / f"volumes-{self.world.posted}.zip"
        parts = cut_zip(path, 3, bytes_of(number, self.world.posted, 20_000))
        return self.made(path.name, *parts)

    async def ours(self) -> list[dict]:
        """What the fleet has standing at the destination."""
        fleet = {phone.lstrip("+") for phone in PHONES}
        listed = await self.world.admin.messages(self.world.destination)
        return [m for m in listed if m["document_id"] and not m["deleted"] and m["phone"] in fleet]

    async def files_of(self, source: int) -> list[dict]:
        listed = await self.world.admin.messages(source)
        return [message for message in listed if message["document_id"] and not message["deleted"]]

    async def set_clock(self, ahead: float) -> None:
        """PostgreSQL's clock, as the fleet sees it, is so far ahead of ours from here on."""
        self.ahead = ahead
        await self.world.fetch(
            "CREATE OR REPLACE FUNCTION fleet_now() RETURNS timestamptz LANGUAGE sql STABLE PARALLEL SAFE AS"
            f" $$ SELECT clock_timestamp() + interval '{ahead} seconds' $$"
        )

    async def resume(self) -> None:
        """No pause is left."""
        await self.on_database(lambda db: PauseStore(db).resume())

    async def try_again(self, set_id: int) -> None:
        """As ``worker sets retry`` does."""
        await self.on_database(lambda db: _unless_refused(retry_set(db, set_id)))

    async def with_a_set(self, number: int, act: Callable[[Database, int], Awaitable[object]]) -> None:
        """A person does this with one of the fleet's sets, and may be told no."""
        sets = await self.world.fetch("SELECT id FROM archive_sets ORDER BY id")
        if sets:
            set_id = sets[number % len(sets)]["id"]
            await self.on_database(lambda db: _unless_refused(act(db, set_id)))

    async def on_database(self, act: Callable[[Database], Awaitable[object]]) -> None:
        """What a command does that needs nothing else."""
        database = Database(self.world.database_url)
        try:
            await act(database)
        finally:
            await database.close()

    async def as_stranger(self, path: Path, caption: str) -> None:
        posted = await self.world.admin.post_document(
            self.world.destination, path, path.name, caption=caption, by=STRANGER
        )
        sha256 = hashlib.sha256(path.read_bytes()).hexdigest()
        self.strangers[posted["message_id"]] = (caption, sha256)

    def scrap(self, number: int, size: int = 777) -> Path:
        """A file that is nobody's archive."""
        path = self.world.folder / f"scrap-{len(list(self.world.folder.glob('scrap-*')))}.zip"
        path.write_bytes(bytes_of(number, 0, size))
        return path


def bytes_of(number: int, more: int, size: int) -> bytes:
    block = hashlib.sha512(f"{number} {more}".encode()).digest()
    stream = io.BytesIO()
    while stream.tell() < size:
        block = hashlib.sha512(block).digest()
        stream.write(block)
    return stream.getvalue()[:size]


async def _unless_refused(asked: Awaitable[object]) -> None:
    """People are told no now and then: a set that is being worked on cannot be left out."""
    try:
        await asked
    except FleetError:
        await asyncio.sleep(0)


def marker_line(
    content_hash: bytes, channel: int, message: int, *, size: int = 777, document: int = 1
) -> str:
    """A line that says what it likes."""
    return Marker(content_hash, size, 0, size, 0, size, "kit.zip", channel, message, document).line()


Act = Callable[[Others, int], Awaitable[None]]
DEEDS: dict[str, Act] = {}


def deed(what: str) -> Callable[[Act], Act]:
    """Have a function called for what schedules call so."""

    def known(act: Act) -> Act:
        DEEDS[what] = act
        return act

    return known
