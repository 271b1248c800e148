"""One PostgreSQL server for the whole run; a database of its own for every test that asks for one."""

import asyncio
import contextlib
import itertools
import os
import signal
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from datetime import UTC, datetime

import archive_report
import asyncpg
import hypothesis
import pytest
import skip_report
from postgres_server import COPYING_VARIABLE, LABEL_VARIABLE, URL_VARIABLE, open_server
from sqlalchemy.engine import make_url

import worker.archives.sevenzip_library  # noqa: F401 - so that tests may import py7zr, all of it or not
from worker.store import migrations
from worker.store.database import Database

# How long an example takes says more about the machine than about the code.
hypothesis.settings.register_profile("fleet", deadline=None)
hypothesis.settings.load_profile("fleet")

_server = contextlib.ExitStack()
_numbers = itertools.count(1)
# Databases of tests that have ended. Whoever makes the next one drops them over the same connection.
_done_with: list[str] = []


def pytest_configure(config: pytest.Config) -> None:
    # Whoever starts the tests in the background has Ctrl-C ignored, by them and all that they start.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    if hasattr(config, "workerinput") or config.option.help or config.option.collectonly:
        return
    _server.enter_context(open_server())


def pytest_unconfigure() -> None:
    if _done_with:
        asyncio.run(_make_room())
    _server.close()


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    archive_report.write(terminalreporter)
    skip_report.write(terminalreporter)


def pytest_report_header() -> str:
    return f"database: {os.environ.get(LABEL_VARIABLE, 'taken from the environment')}"


def _url_of(name: str) -> str:
    return make_url(os.environ[URL_VARIABLE]).set(database=name).render_as_string(hide_password=False)


async def _make_room(*statements: str) -> None:
    connection = await asyncpg.connect(os.environ[URL_VARIABLE])
    try:
        while _done_with:
            await connection.execute(f"DROP DATABASE {_done_with[-1]} WITH (FORCE)")
            _done_with.pop()
        for statement in statements:
            await connection.execute(statement)
    finally:
        await connection.close()


def _name(worker_id: str, purpose: str) -> str:
    return f"fleet_{purpose}_{os.getpid()}_{worker_id}_{next(_numbers)}"


@pytest.fixture(scope="session")
def template(worker_id: str) -> Iterator[str]:
    """A migrated database that the others are copied from."""
    name = _name(worker_id, "template")
    asyncio.run(_make_room(f"CREATE DATABASE {name}"))
    migrations.upgrade(_url_of(name))
    yield name
    _done_with.append(name)


@pytest.fixture
async def empty_database_url(worker_id: str) -> AsyncIterator[str]:
    """A database without any schema."""
    name = _name(worker_id, "empty")
    await _make_room(f"CREATE DATABASE {name}")
    yield _url_of(name)
    _done_with.append(name)


@pytest.fixture
async def database_url(template: str, worker_id: str) -> AsyncIterator[str]:
    """A migrated database. Advisory locks and notifications are per database, so no test disturbs another."""
    name = _name(worker_id, "test")
    copying = os.environ.get(COPYING_VARIABLE, "")
    await _make_room(f"CREATE DATABASE {name} TEMPLATE {template} {copying}")
    yield _url_of(name)
    _done_with.append(name)


@pytest.fixture
async def database(database_url: str) -> AsyncIterator[Database]:
    opened = Database(database_url)
    yield opened
    await opened.close()


class FleetTime:
    """What ``fleet_now()`` says, to every process on one database at once."""

    def __init__(self, database_url: str) -> None:
        self._database_url = database_url
        self._now, self._ahead = "clock_timestamp()", 0.0

    async def advance(self, seconds: float) -> None:
        self._ahead += seconds
        await self._tell()

    async def stand(self) -> None:
        self._now = f"timestamptz '{datetime.now(UTC)}'"
        await self._tell()

    async def _tell(self) -> None:
        connection = await asyncpg.connect(self._database_url)
        try:
            await connection.execute(
                "CREATE OR REPLACE FUNCTION fleet_now() RETURNS timestamptz LANGUAGE sql STABLE PARALLEL SAFE AS "
                f"$$ SELECT {self._now} + interval '{self._ahead} seconds' $$"
            )
        finally:
            await connection.close()


@pytest.fixture
def fleet_time(database_url: str) -> FleetTime:
    return FleetTime(database_url)


@pytest.fixture
def advance_fleet_time(fleet_time: FleetTime) -> Callable[[float], Awaitable[None]]:
    """Let ``fleet_now()`` jump, for every process on this database at once."""
    return fleet_time.advance


@pytest.fixture
async def standing_fleet_time(fleet_time: FleetTime) -> None:
    """``fleet_now()`` moves only when it is made to jump: how long the test takes is seen by nobody."""
    await fleet_time.stand()
