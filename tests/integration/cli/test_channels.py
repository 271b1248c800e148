"""``worker channels`` on what is known already: letting a source rest, and saying what it is about."""

import json

import pytest
from fleet_rows import insert_fleet
from worker_command import worker


@pytest.fixture
async def channels(database_url):
    await insert_fleet(database_url)

    async def run(*arguments):
        return await worker("channels", *arguments, database_url=database_url)

    return run


async def _row(channels) -> dict:
    listed = json.loads((await channels("list", "--json")).out)
    return next(row for row in listed if row["id"] == 1001)


async def test_a_source_rests_and_goes_on(channels, database_url):
    assert (await channels("disable", "@models")).out == "Model Archive rests.\n"
    assert (await _row(channels))["enabled"] is False
    assert "rests" in (await channels("list")).out
    assert (await channels("enable", "1001")).out == "Model Archive is read again.\n"
    assert (await _row(channels))["enabled"] is True


async def test_a_category_is_given_and_taken_back(channels):
    assert (await channels("category", "Model Archive", "castles")).code == 0
    assert (await _row(channels))["category"] == "castles"
    assert (await channels("category", "@models")).out == "Model Archive has no category.\n"
    assert (await _row(channels))["category"] is None
