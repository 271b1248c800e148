"""Damage every sample; the answer must come, in time, and must be honest.

``FUZZ_SECONDS`` is the time box (20 s unless told). ``FUZZ_SECONDS=0`` means no box: all 50 cuts and all 500
flips of every sample. A failure names the sample and the damage, which ``FUZZ_SEED`` repeats.
"""

import asyncio
import itertools
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
    noticed = bool(listing.marks - {Mark.EMPTY}) or not complete
    only_padding_lost = maker.format == "tar" and listing.entries == intact.entries
    assert noticed or only_padding_lost, damage
    return noticed


def judge_flip(maker, damage, complete, result, intact):
    listing = result.listing
    noticed = bool(listing.marks - intact.marks) or not complete
    # Some bits matter to nobody (an operating system's number), some are under no checksum that can be
    # computed here (packed RAR data, encrypted data): then the listing must be what it was.
    assert noticed or listing.entries == intact.entries or not maker.protected, damage
    return noticed


async def fuzz(nursery, bodies, maker, damages, judge, deadline):
    """How many damages were tried, and how many of them were noticed."""
    _, intact = await memory_sets.examined(nursery, bodies)

    async def one(damage, damaged):
        complete, result = await memory_sets.examined(nursery, damaged)
        assert not result.listing.marks & NEVER, (damage, result.listing.notes)
        return judge(maker, damage, complete, result, intact.listing)

    verdicts = []
    for pair in batched(damages, AT_ONCE):
        if SECONDS and time.monotonic() > deadline:
            break
        verdicts += await asyncio.gather(*(one(damage, damaged) for damage, damaged in pair))
    return len(verdicts), sum(verdicts)


def batched(items, size):
    iterator = iter(items)
    while batch := tuple(itertools.islice(iterator, size)):
        yield batch


@pytest.mark.parametrize(("damage", "judge"), [(cuts, judge_cut), (flips, judge_flip)])
@pytest.mark.parametrize("name", FUZZED)
async def test_damage_never_crashes_never_hangs_and_never_goes_unnoticed(
    name, damage, judge, tmp_path, nursery, record_property
):
    sample = samples.build(name, tmp_path)
    bodies = {file.name: file.read_bytes() for file in sample.files}
    damages = damage(bodies, random.Random(f"{SEED} {name} {damage.__name__}"))
    deadline = time.monotonic() + SECONDS / (2 * len(FUZZED))
    tried, noticed = await fuzz(nursery, bodies, samples.MAKERS[name], damages, judge, deadline)
    record_property(f"fuzz-{damage.__name__} tried", tried)
    record_property(f"fuzz-{damage.__name__} marked", noticed)
