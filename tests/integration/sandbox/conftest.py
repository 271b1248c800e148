from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from running_sandbox import RunningSandbox

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path


@pytest.fixture
async def sandbox(tmp_path: Path) -> AsyncIterator[RunningSandbox]:
    running = await RunningSandbox.start("--state", str(tmp_path / "state"))
    yield running
    await running.stop()
