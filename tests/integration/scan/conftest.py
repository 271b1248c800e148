"""A world to scan, and files to post in it."""

import sys
from pathlib import Path

import pytest
from world import PHONES, open_world

# The samples that the archives' own tests are made of.
sys.path.insert(0, str(Path(__file__).parents[1] / "archives"))

ONE_ACCOUNT = ("--account", PHONES[0])


@pytest.fixture
async def world(tmp_path, database_url):
    async with open_world(tmp_path, database_url, calm=True) as opened:
        yield opened


@pytest.fixture
def run(world):
    """Let one account work until nothing is left to do now."""

    async def once(*argv: str, faults: str = "", ends=None) -> None:
        ended = await world.run("run", "--once", *(argv or ONE_ACCOUNT), faults=faults)
        assert ended == (ends or {"exit": 0}), world.workers.logs[-1].read_text()

    return once


@pytest.fixture
def sets(world):
    """The sets by name: state, reason, number of parts."""

    async def read() -> dict[str, tuple[str, str | None, int]]:
        rows = await world.fetch("SELECT name, state, reason, part_count FROM archive_sets ORDER BY id")
        assert len({row["name"] for row in rows}) == len(rows), "sets of one name hide each other here"
        return {row["name"]: (row["state"], row["reason"], row["part_count"]) for row in rows}

    return read
