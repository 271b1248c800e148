"""Every pooled connection is in use."""

import pytest

from worker.errors import RetryableError
from worker.store import database as module
from worker.store.database import Database


async def test_a_starved_pool_is_a_reason_to_try_again(database_url, monkeypatch):
    monkeypatch.setattr(module, "COMMAND_SECONDS", 0.1)
    starved = Database(database_url, pool_size=1)
    async with starved.reading():
        with pytest.raises(RetryableError, match="did not do it"):
            async with starved.reading():
                pytest.fail("there was no connection to be had")
    await starved.close()
