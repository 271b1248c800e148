from __future__ import annotations

from itertools import count
from typing import TYPE_CHECKING

import pytest
from running_sandbox import RunningSandbox

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator
    from pathlib import Path

    from pyrogram import Client

_numbers = count(49_300_000)


@pytest.fixture(scope="session")
def shared_sandbox(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningSandbox]:
    running = RunningSandbox.start("--state", str(tmp_path_factory.mktemp("sandbox")))
    yield running
    running.stop()


@pytest.fixture
async def sandbox(shared_sandbox: RunningSandbox) -> AsyncIterator[RunningSandbox]:
    """A server that other tests use too, with accounts and channels of their own."""
    yield shared_sandbox
    await shared_sandbox.admin.clear_rules()
    await shared_sandbox.admin.set_repeats(as_errors=False)


@pytest.fixture
def own_sandbox(tmp_path: Path) -> Iterator[RunningSandbox]:
    """A server of this test's own, to be killed and restarted."""
    running = RunningSandbox.start("--state", str(tmp_path / "state"))
    yield running
    running.stop()


@pytest.fixture
def phone() -> str:
    """A number nobody has."""
    return f"+{next(_numbers)}"


@pytest.fixture
async def client(sandbox: RunningSandbox, tmp_path: Path, phone: str) -> AsyncIterator[Client]:
    """The stock client, logged in with that number."""
    await sandbox.admin.create_account(phone, "Test")
    async with sandbox.logged_in(phone, tmp_path) as client:
        yield client


@pytest.fixture
def other() -> str:
    """Another number nobody has."""
    return f"+{next(_numbers)}"
