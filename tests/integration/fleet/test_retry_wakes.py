"""A set that a person wants tried again is looked at at once, not at the next cycle."""

import asyncio
from types import SimpleNamespace

from fleet_rows import execute, insert_fleet
from hang_guard import HANG_SECONDS

from worker.clock import SystemClock
from worker.fleet.bell import Bell
from worker.fleet.pausing import wake_when_told
from worker.store.pauses import PauseStore
from worker.store.set_listing import retry_set


async def test_trying_a_set_again_wakes_the_workers(database, database_url):
    await insert_fleet(database_url)
    await execute(
        database_url,
        "INSERT INTO source_files (channel_id, message_id, document_id, file_name, size, posted_at, set_id, part_number)"
        " VALUES (2, 9, 6, 'Six.zip', 1, now(), 6, 0)",
    )
    listening = asyncio.Event()

    class Pauses(PauseStore):
        async def pauses(self):
            # Looked at as soon as the connection stands: whatever is announced from here on is heard.
            found = await super().pauses()
            listening.set()
            return found

    process = SimpleNamespace(database=database, pauses=Pauses(database), wake=Bell(), clock=SystemClock())
    waking = asyncio.create_task(wake_when_told(process))
    try:
        async with asyncio.timeout(HANG_SECONDS):
            await listening.wait()
        ring = process.wake.next_ring()
        await retry_set(database, 6)
        assert await ring.within(HANG_SECONDS)
    finally:
        waking.cancel()
        await asyncio.gather(waking, return_exceptions=True)
