"""What was done and never heard of: a COMMIT without a reply; a session that ended during a reconnection."""

import asyncio
import contextlib

import pytest
from hang_guard import HANG_SECONDS
from lost_claim import LosesAReply
from postgres_place import over_a_line
from world import PHONES, open_world

from worker.clock import SystemClock
from worker.config.settings import RateLimitSettings
from worker.errors import AccountUnusableError
from worker.fleet.governance import open_governance
from worker.store.accounts import load_session
from worker.store.database import Database
from worker.store.sealing import Sealer
from worker.telegram.client import Server
from worker.telegram.gateway import Gateway

ONE = ("--account", PHONES[0])


async def test_a_claim_whose_commit_was_not_answered_is_made_again_in_the_same_round(tmp_path, database_url):
    line = LosesAReply(database_url)
    await line.mend()
    address = over_a_line(database_url, line.port)
    async with open_world(tmp_path, database_url) as world:
        await world.post_archive(world.sources[0])
        env = world.env(WORKER_DATABASE_URL=address)
        pid = world.workers.start("run", "--once", *ONE, env=env)
        await asyncio.to_thread(world.workers.wait, pid)
        assert line.lost == 1
        assert [tuple(row) for row in await world.fetch("SELECT state, fence FROM archive_sets")] == [
            ("indexed", 2)
        ]
        await world.drain(*ONE)
        await world.check_invariants()
    await line.cut()


async def test_a_session_that_ends_while_the_library_reconnects_is_told_to_the_next_caller(
    tmp_path, database_url
):
    async with open_world(tmp_path, database_url) as world:
        database = Database(database_url)
        async with open_governance(
            database, RateLimitSettings(profile="relaxed"), SystemClock()
        ) as governance:
            first = await _gateway(world, database, governance, "127.0.0.5")
            second = await _gateway(world, database, governance, "127.0.0.6")
            async with contextlib.AsyncExitStack() as stack:
                stack.push_async_callback(first.close)
                stack.push_async_callback(second.close)
                await first.connect()
                await first.me()
                # The same key from two places: Telegram revokes it for good.
                with contextlib.suppress(AccountUnusableError):
                    await second.connect()
                await world.admin.disconnect(PHONES[0])
                async with asyncio.timeout(HANG_SECONDS):
                    with pytest.raises(AccountUnusableError):
                        await first.me()
        await database.close()


async def _gateway(world, database, governance, address: str) -> Gateway:
    session = await load_session(database, Sealer(bytes(32)), 1)
    server = Server(1, "0" * 32, world.facts["host"], world.facts["port"], bind_address=address)
    return Gateway(
        server,
        permission=governance.permission(1),
        deadline=5,
        dc_id=session.dc_id,
        auth_key=session.auth_key,
    )
