"""Damage every sample; the answer must come, in time, and must be honest.

A damaged archive always has a mark. It is one that the intact archive has not, or the damage provably changes nothing, or
it lies in bytes that the intact archive's own listing counts as ``unchecked`` and is marked for. Then the listing is the intact one, but for names where the format keeps no checksum of names; and the
format's own program, where it is installed, notices nothing either, unless it alone can unpack those bytes.

``FUZZ_SECONDS`` is the time box (20 s unless told). ``FUZZ_SECONDS=0`` means no box: all 50 cuts and all 500
flips of every sample. A failure names the sample and the damage, which ``FUZZ_SEED`` repeats.
"""

import asyncio
import itertools
import os
import random
import time
from collections import Counter
from dataclasses import dataclass
from functools import cached_property

import archive_samples as samples
import memory_sets
import pytest
import reference_tools
from unchecked_ranges import unchecked_ranges

from worker.domain.listing import Limits, Mark, Unchecked

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.timeout(0)]

SECONDS = float(os.environ.get("FUZZ_SECONDS", "20"))
SEED = int(os.environ.get("FUZZ_SEED", "1"))
CUTS, FLIPS, FIELD_FLIPS = 50, 500, 100
# A busy machine must not cut a check short: what it left out would look like damage that was not noticed.
PATIENT = Limits()
NEVER = {Mark.CRASHED, Mark.TIME_LIMIT, Mark.MEMORY_LIMIT}
FUZZED = [name for name, maker in samples.MAKERS.items() if maker.fuzzed]
# RAR encrypts headers in blocks of 16 bytes, the older one behind a salt of 8; its volumes end within blocks.
CIPHER_BLOCK = {"rar4": 8, "rar4 volumes": 1, "rar5": 16, "rar5 volumes": 16}
MARKED, NO_EFFECT, ONLY_ZEROS, HIDDEN = "marked", "no effect", "only zeros lost", "hidden by encryption"


@dataclass
class Fuzzed:
    """A sample as it is before it is damaged."""

    form: str
    bodies: dict
    listing: object
    ranges: list
    folder: object

    @cached_property
    def accepted(self):
        """Whether the format's own program finds nothing wrong with it as it is."""
        return reference_tools.accepts(self.form, self.bodies, self.folder)

    def reasons_at(self, part, offset):
        before = itertools.takewhile(lambda name: name != part, self.bodies)
        place = sum(len(self.bodies[name]) for name in before) + offset
        return {why for start, length, why in self.ranges if start <= place < start + length}


def cuts(sample, chance):
    bodies = sample.bodies
    for _ in range(CUTS):
        part = chance.choice(list(bodies))
        length = chance.randrange(1, len(bodies[part]))
        yield (part, length), {**bodies, part: bodies[part][:length]}


def flips(sample, chance):
    for _ in range(FLIPS):
        part = chance.choice(list(sample.bodies))
        yield flipped(sample.bodies, part, chance.randrange(8 * len(sample.bodies[part])))


def field_flips(sample, chance):
    """Contents are most of an archive: here only bits of headers are flipped, those that have no checksum."""
    weak = [(at, size) for at, size, why in sample.ranges if why in (Unchecked.FIELDS, Unchecked.NAMES)]
    for _ in range(FIELD_FLIPS if weak else 0):
        start, length = chance.choice(weak)
        place = start + chance.randrange(length)
        for part, body in sample.bodies.items():
            if place < len(body):
                yield flipped(sample.bodies, part, 8 * place + chance.randrange(8))
                break
            place -= len(body)


def flipped(bodies, part, bit):
    body = bytearray(bodies[part])
    body[bit // 8] ^= 1 << bit % 8
    return (part, bit), {**bodies, part: bytes(body)}


def judge_cut(sample, damage, damaged, complete, listing):
    part, length = damage
    if listing.marks - sample.listing.marks - {Mark.EMPTY} or not complete:
        return MARKED
    assert listing.entries == sample.listing.entries, damage
    lost = sample.bodies[part][length:]
    if sample.form == "tar" and not any(lost):
        return ONLY_ZEROS
    assert Mark.ENCRYPTED_NAMES in listing.marks, damage
    assert len(lost) % CIPHER_BLOCK[sample.form] == 0, damage
    return HIDDEN


def judge_flip(sample, damage, damaged, complete, listing):
    part, bit = damage
    if listing.marks - sample.listing.marks or not complete:
        return MARKED
    reasons = sample.reasons_at(part, bit // 8)
    if not reasons:
        told = reference_tools.contents(sample.form, damaged)
        assert told is not None, damage
        assert told == reference_tools.contents(sample.form, sample.bodies), damage
    if Unchecked.NAMES not in reasons:
        assert essence(listing) == essence(sample.listing), damage
    # What no free decoder unpacks, a program with its own may well find damaged; the listing has said so.
    if sample.accepted and reasons != {Unchecked.METHOD}:
        assert reference_tools.accepts(sample.form, damaged, sample.folder), (damage, reasons)
    return min(reasons).value if reasons else NO_EFFECT


def essence(listing):
    return [(entry.path, entry.size, entry.crc32, entry.is_dir) for entry in listing.entries]


async def fuzz(nursery, sample, damages, judge, deadline):
    """What became of the damages, counted."""

    async def one(damage, damaged):
        complete, result = await memory_sets.examined(nursery, damaged, PATIENT)
        assert not result.listing.marks & NEVER, (damage, result.listing.notes)
        assert result.listing.candid_marks or not complete, damage
        return await asyncio.to_thread(judge, sample, damage, damaged, complete, result.listing)

    verdicts = Counter()
    for damage, damaged in damages:
        verdicts[await one(damage, damaged)] += 1
        if SECONDS and time.monotonic() > deadline:
            break
    return verdicts


DAMAGES = [(cuts, judge_cut), (flips, judge_flip), (field_flips, judge_flip)]


@pytest.mark.parametrize(("damage", "judge"), DAMAGES)
@pytest.mark.parametrize("name", FUZZED)
async def test_damage_never_crashes_never_hangs_and_never_goes_unnoticed(
    name, damage, judge, tmp_path, nursery, record_property
):
    built = samples.build(name, tmp_path / "made")
    found, _ = memory_sets.set_of({file.name: file.read_bytes() for file in built.files})
    bodies = {part.file_name: (tmp_path / "made" / part.file_name).read_bytes() for part in found.parts}
    complete, intact = await memory_sets.examined(nursery, bodies)
    assert complete
    (folder := tmp_path / "damaged").mkdir()
    sample = Fuzzed(samples.MAKERS[name].format, bodies, intact.listing, unchecked_ranges(bodies), folder)
    damages = damage(sample, random.Random(f"{SEED} {name} {damage.__name__}"))
    deadline = time.monotonic() + SECONDS / (len(DAMAGES) * len(FUZZED))
    verdicts = await fuzz(nursery, sample, damages, judge, deadline)
    for verdict, count in verdicts.items():
        kind = damage.__name__.replace("_", " ")
        record_property("fuzz", (sample.form, kind, verdict, count))
