"""A call that is cancelled ends, whatever it waits for at that moment."""

import asyncio
from types import SimpleNamespace

import pytest
from hang_guard import HANG_SECONDS
from pyrogram import raw

from worker.telegram.doubts import KeyDoubts
from worker.telegram.session import FleetSession
from worker.telegram.streak import Streak


class Connection:
    """Sends as the library does: it waits for its turn by ``wait_for``, although that has come."""

    def __init__(self):
        self.protocol = SimpleNamespace(
            crypto_executor=None, writer=SimpleNamespace(is_closing=lambda: False)
        )
        self.on_send = lambda: None
        self.sent = 0

    async def send(self, data):
        turn = asyncio.Event()
        turn.set()
        self.on_send()
        await asyncio.wait_for(turn.wait(), HANG_SECONDS)
        self.sent += 1


@pytest.fixture
async def session():
    client = SimpleNamespace(server_time=1.0, loop=asyncio.get_running_loop())
    made = FleetSession(
        client, 2, "127.0.0.1", 443, bytes(256), False, doubts=KeyDoubts(), streak=Streak(60.0)
    )
    made.connection = Connection()
    return made


def _call(session):
    query = raw.functions.users.GetUsers(id=[])
    return asyncio.create_task(session.call(query, deadline=4 * HANG_SECONDS))


async def _ends(calling):
    await asyncio.wait({calling}, timeout=HANG_SECONDS)
    assert calling.cancelled()


async def test_one_that_is_cancelled_as_its_session_starts_sends_nothing(session):
    calling = _call(session)
    await asyncio.sleep(0)
    session.is_started.set()
    calling.cancel()
    await _ends(calling)
    assert session.connection.sent == 0


async def test_one_that_is_cancelled_as_it_leaves_waits_for_no_answer(session):
    session.is_started.set()
    calling = _call(session)
    session.connection.on_send = lambda: asyncio.get_running_loop().call_soon(calling.cancel)
    await _ends(calling)
    assert session.results == {}
