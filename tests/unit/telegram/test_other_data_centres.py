"""Another data centre may forget a key; that says nothing about the account."""

import asyncio
from types import SimpleNamespace

import pytest

from worker.errors import AccountUnusableError
from worker.telegram.connections import Connections, TransferBounds
from worker.telegram.depth import Depth
from worker.telegram.storage import MemoryStorage, OtherKeys

HOME, OTHER = 2, 4


class Forgetful:
    """Carries calls, and refuses those on the first route as a data centre that has forgotten its key does."""

    def __init__(self) -> None:
        self.first = None

    async def carry(self, route, call):
        self.first = self.first or route
        await asyncio.sleep(0)
        if route is self.first:
            raise AccountUnusableError("AUTH_KEY_UNREGISTERED")
        return "done"


@pytest.fixture
def connections():
    made = object.__new__(Connections)
    made._storage = MemoryStorage(dc_id=HOME, auth_key=bytes(256))
    made._storage.other_keys = OtherKeys({OTHER: bytes(256)})
    made._porter, made._bounds = Forgetful(), TransferBounds()
    made._routes, made._depths, made._opening = {}, {}, asyncio.Lock()

    async def open_route(dc_id):
        async with made._opening:
            return made._routes.setdefault(dc_id, SimpleNamespace(wanted=0, per_line=0))

    made._open_route = open_route
    return made


async def test_every_part_that_was_under_way_goes_on_with_a_fresh_key(connections):
    call = SimpleNamespace(method="upload.GetFile")
    done = await asyncio.gather(*(connections.call_files(OTHER, call) for _ in range(4)))
    assert done == ["done"] * 4
    assert connections._storage.other_keys.known == {}


async def test_at_home_the_account_itself_is_meant(connections):
    with pytest.raises(AccountUnusableError):
        await connections.call_files(HOME, SimpleNamespace(method="upload.GetFile"))


async def test_readers_of_ranges_keep_their_lines_while_few_parts_go_up(connections):
    """They enter no depth, so that only their depth's own width speaks for them."""
    down, up = (Depth(32, 8, start=start) for start in (16, 1))
    connections._depths = {(OTHER, "down"): down, (OTHER, "up"): up}
    await up.enter()
    for _ in range(2):
        await connections.call_files(OTHER, SimpleNamespace(method="upload.GetFile"))
    assert connections._routes[OTHER].wanted == down.lines == 4
