import sys
from pathlib import Path

import pytest_asyncio

sys.path.insert(0, str(Path(__file__).parent))

from worker.archives.nursery import Nursery


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def nursery():
    async with Nursery() as opened:
        yield opened
