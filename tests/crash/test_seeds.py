"""Several workers, faults drawn from a seed. A failing seed is in the test's name and draws the same faults again.

It replays the schedule of faults, not every interleaving of the processes that meet them.
"""

import asyncio
import os
import random

import pytest
from scenarios import RUN
from worker_processes import STARVED
from world import PHONES, open_world

SEEDS = int(os.environ.get("CRASH_SEEDS", "2"))
# Where a kill hurts most; the Nth reach is drawn too.
PLACES = (
    "db.scan.page",
    "db.sets.claim",
    "db.sets.hashes",
    "db.uploads.intent",
    "db.uploads.sending",
    "telegram.messages.SendMedia",
    "db.uploads.sent",
    "db.packages.stub",
    "db.packages.complete",
)
TROUBLES = (
    ("messages.sendMedia", "drop_reply", {}),
    ("messages.sendMedia", "disconnect", {}),
    ("messages.sendMedia", "error", {"code": 420, "text": "FLOOD_WAIT_1"}),
    ("messages.sendMedia", "error", {"code": 500, "text": "INTERNAL"}),
    ("upload.saveFilePart", "disconnect", {}),
    ("upload.saveFilePart", "error", {"code": 420, "text": "FLOOD_PREMIUM_WAIT_1"}),
    ("upload.getFile", "error", {"code": 400, "text": "FILE_REFERENCE_EXPIRED"}),
    ("upload.getFile", "short", {}),
    ("upload.getFile", "disconnect", {}),
    ("messages.getHistory", "error", {"code": 420, "text": "FLOOD_WAIT_1"}),
    ("messages.getHistory", "drop_reply", {}),
)
ROUNDS = 3


async def _post(world, chance):
    """Some archives, some of them twice, some in several files, some files later than others."""
    for _ in range(chance.randint(1, 2)):
        await world.post_archive(*chance.sample(world.sources, chance.randint(1, 2)))
    parts = world.make_volumes()
    chance.shuffle(parts)
    await world.post_files(chance.choice(world.sources), parts)


def _fault(chance) -> str:
    if chance.random() < 0.3:
        return ""
    edge = chance.choice(("before", "after"))
    return f"kill={chance.choice(PLACES)}:{edge}:{chance.randint(1, 2)}"


@pytest.mark.timeout(600)
@pytest.mark.parametrize("seed", range(SEEDS))
async def test_whatever_the_seed_brings_everything_is_there_once(tmp_path, database_url, seed):
    chance = random.Random(seed)
    async with open_world(tmp_path, database_url) as world:
        await world.admin.set_repeats(as_errors=chance.random() < 0.5)
        await world.fetch("UPDATE channels SET copy_mode = $1 WHERE is_source", bool(seed % 2))
        for _ in range(ROUNDS):
            await _post(world, chance)
            for method, action, options in chance.sample(TROUBLES, 2):
                await world.admin.add_rule(method, action, nth=chance.randint(1, 3), **options)
            pids = [
                world.workers.start(*RUN, "--account", phone, env=world.env(_fault(chance)))
                for phone in PHONES
            ]
            for pid in pids:
                ended = await asyncio.to_thread(world.workers.wait, pid)
                assert ended in ({"signal": 9}, {"exit": 0}, STARVED), (
                    seed,
                    world.workers.logs[-1].read_text(),
                )
            await world.admin.clear_rules()
        await world.drain()
        await world.check_invariants()
