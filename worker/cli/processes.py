"""A worker process for the length of a command, for those that need an account's connection."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

from worker.cli.opening import Opened, database
from worker.fleet.process import open_process

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from worker.fleet.process import Process


@contextlib.asynccontextmanager
async def process_at(place: Opened) -> AsyncIterator[Process]:
    """Registered in the database of ``place``, which it brings along, with a Telegram to talk to."""
    with place.telegram():
        async with (
            database(place.address) as opened_database,
            open_process(place.settings, opened_database) as process,
        ):
            yield process
