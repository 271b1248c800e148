"""An account behind a proxy: every connection of it passes there, for calls and for files."""

import pytest
from proxy_servers import KINDS, OUTSIDE, link_to, running
from world import PHONES, open_world

from worker.errors import UserError
from worker.store import proxies
from worker.store.accounts import all_accounts
from worker.store.database import Database
from worker.store.sealing import Sealer
from worker.telegram.proxy import parse_proxy, shown

ONE = ("--account", PHONES[0])


@pytest.mark.parametrize("kind", KINDS)
async def test_an_archive_is_published_through_a_proxy_alone(tmp_path, database_url, kind):
    async with (
        open_world(tmp_path, database_url) as world,
        running(KINDS[kind].server((world.facts["host"], world.facts["port"]))) as proxy,
    ):
        database = Database(database_url)
        account = (await all_accounts(database))[0]
        await proxies.save(database, Sealer(bytes(32)), account.id, link_to(kind, proxy))
        await database.close()
        before = len(await world.admin.connections())
        await world.post_archive(world.sources[0], size=3_000_000)
        await world.drain(*ONE)
        await world.check_invariants()
        made = (await world.admin.connections())[before:]
        assert {connection["address"] for connection in made} == {OUTSIDE}
        assert proxy.passed >= len(made) > 1


def test_a_proxy_is_shown_without_its_secrets():
    assert shown("socks5://ada:hidden@proxy.example:1080") == "socks5 at proxy.example:1080"


@pytest.mark.parametrize("address", ["ftp://ada:hidden@x:1", "nonsense:hidden", "socks4://x:1"])
def test_what_is_no_proxy_is_refused_without_being_repeated(address):
    with pytest.raises(UserError) as refused:
        parse_proxy(address)
    assert "hidden" not in str(refused.value)
