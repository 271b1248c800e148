"""A worker is killed at every failpoint; after a restart everything is there, once."""

from collections import Counter

import pytest
from world import PHONES, open_world

ONE_ACCOUNT = ("--account", PHONES[0])


def _places(record: str) -> list[str]:
    """First and last reach of every failpoint of a recorded run, in the order of the run."""
    total = Counter(record.split())
    seen: Counter[str] = Counter()
    places = []
    for place in record.split():
        seen[place] += 1
        if seen[place] in (1, total[place]):
            places.append(f"{place}:{seen[place]}")
    return places


@pytest.mark.timeout(400)
@pytest.mark.parametrize("quarter", range(4))
async def test_a_worker_killed_at_any_failpoint_loses_and_doubles_nothing(tmp_path, database_url, quarter):
    async with open_world(tmp_path, database_url) as world:
        record = tmp_path / "record"
        await world.post_archive(world.sources[0])
        assert await world.run("run", "--once", *ONE_ACCOUNT, faults=f"record={record}") == {"exit": 0}
        places = _places(record.read_text())
        assert len(places) > 40

        killed = 0
        for place in places[quarter::4]:
            await world.post_archive(world.sources[0])
            ended = await world.run("run", "--once", *ONE_ACCOUNT, faults=f"kill={place}")
            # Heartbeats and sweeps come by the clock: a run may end before their last reach.
            killed += ended == {"signal": 9}
            assert ended in ({"signal": 9}, {"exit": 0}), (place, world.workers.logs[-1].read_text())
            await world.drain(*ONE_ACCOUNT)
            await world.check_invariants()
        assert killed > 0.8 * len(places[quarter::4])
