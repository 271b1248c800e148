from __future__ import annotations

import sys
from itertools import count
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "sandbox"))

from running_sandbox import RunningSandbox
from transfer_bench import open_desk

_numbers = count(49_800_000)


@pytest.fixture(scope="session")
def shared_telegram(tmp_path_factory):
    running = RunningSandbox.start("--state", str(tmp_path_factory.mktemp("telegram")))
    yield running
    running.stop()


@pytest.fixture
async def desk(shared_telegram, tmp_path):
    async with open_desk(shared_telegram, f"+{next(_numbers)}", tmp_path) as opened:
        yield opened
    await shared_telegram.admin.clear_rules()
    await shared_telegram.admin.set_shape()


@pytest.fixture
async def own_desk(tmp_path):
    """On a server of its own, to be killed and restarted."""
    running = RunningSandbox.start("--state", str(tmp_path / "telegram"))
    try:
        async with open_desk(running, f"+{next(_numbers)}", tmp_path) as opened:
            yield opened
    finally:
        running.stop()
