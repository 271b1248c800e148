"""How long a test waits for what must come, before it calls that a hang.

Long on purpose: on a busy machine everything is late, and a test that measures that measures the machine.
What must come *soon* is shown by what has not happened yet when it comes, or on a manual clock.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

HANG_SECONDS = 120
T = TypeVar("T")


async def until(condition: Callable[[], Awaitable[T]]) -> T:
    """The first answer of this condition that is not empty: what other processes do gives no event here."""
    async with asyncio.timeout(HANG_SECONDS):
        while not (found := await condition()):  # noqa: ASYNC110 - see above
            await asyncio.sleep(0.05)
        return found
