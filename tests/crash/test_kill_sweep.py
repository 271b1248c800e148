"""A worker is killed at every failpoint; after a restart everything is there, once."""

import os
import random

import pytest
from scenarios import SCENARIOS, places
from worker_processes import STARVED
from world import open_world

SHARES = 16
# Pairs of kills per share of a scenario: one in the run, one in what follows it.
PAIRS = int(os.environ.get("CRASH_PAIRS", "2"))


def _cases():
    for name in SCENARIOS:
        for share in range(SHARES):
            # Every sixteenth place of the main scenario is swept whenever tests run; the rest by `make crash`.
            marks = () if (name, share) == ("single", 0) else (pytest.mark.long,)
            yield pytest.param(name, share, marks=marks, id=f"{name} {share + 1} of {SHARES}")


async def _recorded(world, scenario, record):
    """The places of one run of the scenario, in order."""
    ended = STARVED
    while ended == STARVED:
        record.unlink(missing_ok=True)
        await scenario.post(world)
        ended = await scenario.strike(world, f"record={record}")
        await world.drain(*scenario.drain)
    assert ended == {"exit": 0}, world.workers.logs[-1].read_text()
    return places(record.read_text())


@pytest.mark.timeout(1500)
@pytest.mark.parametrize(("name", "share"), list(_cases()))
async def test_a_worker_killed_at_any_failpoint_loses_and_doubles_nothing(
    tmp_path, database_url, name, share
):
    scenario = SCENARIOS[name]()
    async with open_world(tmp_path, database_url) as world:
        await scenario.prepare(world)
        # Heartbeats and sweeps come by the clock, and some things happen once in a world: only what two runs
        # have in common is sure to be reached again.
        certain = set(await _recorded(world, scenario, tmp_path / "first"))
        found = await _recorded(world, scenario, tmp_path / "second")
        certain &= set(found[share::SHARES])
        assert len(found) > 20
        killed = set()
        for place in found[share::SHARES]:
            await scenario.post(world)
            ended = await scenario.strike(world, f"kill={place}")
            if ended == {"signal": 9}:
                killed.add(place)
            assert ended in ({"signal": 9}, {"exit": 0}, STARVED), (place, world.workers.logs[-1].read_text())
            await world.drain(*scenario.drain)
            await world.check_invariants()
        assert len(certain & killed) >= scenario.reached * len(certain), certain - killed


@pytest.mark.long
@pytest.mark.timeout(1500)
@pytest.mark.parametrize("name", SCENARIOS)
async def test_a_second_kill_while_the_first_is_put_right_loses_and_doubles_nothing(
    tmp_path, database_url, name
):
    scenario = SCENARIOS[name]()
    chosen = random.Random(name)
    async with open_world(tmp_path, database_url) as world:
        await scenario.prepare(world)
        found = await _recorded(world, scenario, tmp_path / "record")
        for _ in range(PAIRS):
            first, second = chosen.choice(found), chosen.choice(found)
            await scenario.post(world)
            await scenario.strike(world, f"kill={first}")
            await world.run("run", "--once", *scenario.drain, faults=f"kill={second}")
            await world.drain(*scenario.drain)
            await world.check_invariants()
