"""Pauses on PostgreSQL: kept and ended."""

import pytest

from worker.domain.pauses import Pause
from worker.store.pauses import PauseStore


@pytest.fixture
def store(database):
    return PauseStore(database)


async def test_g14_pauses_are_kept_until_they_are_resumed(store):
    await store.pause()
    await store.pause(account=1)
    await store.pause(channel=5)
    assert set(await store.pauses()) == {Pause(), Pause(account=1), Pause(channel=5)}
    assert await store.resume(account=1) == 1
    assert set(await store.pauses()) == {Pause(), Pause(channel=5)}
    assert await store.resume() == 2
    assert await store.pauses() == []


async def test_g14_a_pause_for_two_hours_ends_by_the_databases_clock(store, advance_fleet_time):
    await store.pause(seconds=7200)
    (pause,) = await store.pauses()
    assert pause.seconds_left == pytest.approx(7200, abs=30)
    await advance_fleet_time(7100)
    assert len(await store.pauses()) == 1
    await advance_fleet_time(100)
    assert await store.pauses() == []


async def test_g14_pausing_again_replaces_the_earlier_pause(store):
    await store.pause(seconds=7200)
    await store.pause()
    assert await store.pauses() == [Pause()]
