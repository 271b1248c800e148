"""Damage every sample; the answer must come, in time, and must be honest.

``FUZZ_SECONDS`` is the time box (20 s unless told). ``FUZZ_SECONDS=0`` means no box: all 50 cuts and all 500
flips of every sample. A failure names the sample and the damage, which ``FUZZ_SEED`` repeats.
"""

import asyncio
import os
import random
import time

import archive_samples as samples
import memory_sets
import pytest

from worker.domain.listing import Mark

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.timeout(0)]

SECONDS = float(os.environ.get("FUZZ_SECONDS", "20"))
SEED = int(os.environ.get("FUZZ_SEED", "1"))
CUTS, FLIPS, AT_ONCE = 50, 500, 2
NEVER = {Mark.CRASHED, Mark.TIME_LIMIT, Mark.MEMORY_LIMIT}
FUZZED = [name for name, maker in samples.MAKERS.items() if maker.fuzzed]


def cuts(bodies, chance):
    for _ in range(CUTS):
        part = chance.choice(list(bodies))
        length = chance.randrange(1, len(bodies[part]))
        yield f"{part} cut to {length}", {**bodies, part: bodies[part][:length]}


def flips(bodies, chance):
    for _ in range(FLIPS):
        part = chance.choice(list(bodies))
        bit = chance.randrange(8 * len(bodies[part]))
        body = bytearray(bodies[part])
        body[bit // 8] ^= 1 << bit % 8
        yield f"{part} bit {bit} flipped", {**bodies, part: bytes(body)}


def judge_cut(maker, damage, complete, result, intact):
    listing = result.listing
    padding_lost = maker.format == "tar" and listing.entries == intact.entries
    assert listing.marks - {Mark.EMPTY} or not complete or padding_lost, damage


def judge_flip(maker, damage, complete, result, intact):
    listing = result.listing
    same = listing.entries == intact.entries
    noticed = listing.marks - intact.marks or not complete
    assert same or noticed or not maker.protected, damage


async def fuzz(nursery, bodies, maker, damages, judge, deadline):
    _, intact = await memory_sets.examined(nursery, bodies)

    async def one(damage, damaged):
        complete, result = await memory_sets.examined(nursery, damaged)
        assert not result.listing.marks & NEVER, (damage, result.listing.notes)
        judge(maker, damage, complete, result, intact.listing)

    done = 0
    pending = []
    for damage, damaged in damages:
        if SECONDS and time.monotonic() > deadline:
            break
        pending.append(one(damage, damaged))
        if len(pending) == AT_ONCE:
            await asyncio.gather(*pending)
            done, pending = done + len(pending), []
    await asyncio.gather(*pending)
    return done + len(pending)


@pytest.mark.parametrize(("damage", "judge"), [(cuts, judge_cut), (flips, judge_flip)])
@pytest.mark.parametrize("name", FUZZED)
async def test_damage_never_crashes_never_hangs_and_never_goes_unnoticed(
    name, damage, judge, tmp_path, nursery, record_property
):
    sample = samples.build(name, tmp_path)
    bodies = {file.name: file.read_bytes() for file in sample.files}
    damages = damage(bodies, random.Random(f"{SEED} {name} {damage.__name__}"))
    deadline = time.monotonic() + SECONDS / (2 * len(FUZZED))
    done = await fuzz(nursery, bodies, samples.MAKERS[name], damages, judge, deadline)
    record_property(f"fuzz-{damage.__name__}", done)
