"""What a fleet is at when it is killed: each scenario posts something anew and says which command to kill."""

import asyncio
import os
from collections import Counter
from dataclasses import dataclass, field

from worker_processes import STARVED
from world import PHONES, World

ONE = ("--account", PHONES[0])
RUN = ("run", "--once")
EVERY_REACH = bool(os.environ.get("CRASH_FULL"))


@dataclass
class Scenario:
    """A single archive, published by one account; the others differ in a step."""

    command: tuple[str, ...] = (*RUN, *ONE)
    drain: tuple[str, ...] = ONE
    settings: dict[str, str] = field(default_factory=dict)
    # How much of what two runs have in common every run comes by.
    reached: float = 0.8

    async def prepare(self, world: World) -> None:
        world.settings |= self.settings

    async def post(self, world: World) -> None:
        """Leave something to do for the command."""
        await world.post_archive(world.sources[0])

    async def strike(self, world: World, faults: str) -> dict:
        """Run the command with these faults; how it ended."""
        return await world.run(*self.command, faults=faults)


class MultiPart(Scenario):
    async def post(self, world):
        await world.post_files(world.sources[0], world.make_volumes())


@dataclass
class Split(Scenario):
    settings: dict[str, str] = field(
        default_factory=lambda: {
            "WORKER_TRANSFER__STANDARD_LIMIT_MIB": "1",
            "WORKER_TRANSFER__PREMIUM_LIMIT_MIB": "1",
        }
    )

    async def post(self, world):
        await world.post_archive(world.sources[0], size=2_500_000)


@dataclass
class Duplicate(Scenario):
    """Two accounts in two processes come by the same bytes; one process is killed."""

    drain: tuple[str, ...] = ()
    # Which of them publishes is a race that the one to be killed may lose.
    reached: float = 0.3

    async def prepare(self, world):
        await super().prepare(world)
        for source, phone in zip(world.sources, reversed(PHONES), strict=True):
            await world.admin.kick(source, phone)
            await world.forget_membership(phone, source)

    async def post(self, world):
        path = await world.post_archive(world.sources[0])
        await world.admin.post_document(world.sources[1], path, f"other {path.name}")

    async def strike(self, world, faults):
        victim = world.workers.start(*self.command, env=world.env(faults))
        other = world.workers.start(*RUN, "--account", PHONES[1], env=world.env())
        ended = await asyncio.to_thread(world.workers.wait, victim)
        assert await asyncio.to_thread(world.workers.wait, other) in ({"exit": 0}, STARVED)
        return ended


class Copy(MultiPart):
    """The files of the source are sent on as they are; a refusal makes the worker upload some of them."""

    async def prepare(self, world):
        await super().prepare(world)
        await world.fetch("UPDATE channels SET copy_mode = true WHERE is_source")

    async def post(self, world):
        await super().post(world)
        await world.admin.clear_rules()
        await world.admin.add_rule("messages.sendMedia", "error", code=400, text="MEDIA_EMPTY", nth=2)

    async def strike(self, world, faults):
        ended = await super().strike(world, faults)
        if ended == {"exit": 0}:
            posted = {message["document_id"] for message in await world.admin.messages(world.sources[0])}
            *_, first, second, last = await world.admin.messages(world.destination)
            assert [m["document_id"] in posted for m in (first, second, last)] == [True, False, True]
        return ended


class LatePart(Scenario):
    """All but one part were seen before; the command meets the part that was missing."""

    async def post(self, world):
        first, late, last = world.make_volumes()
        await world.post_files(world.sources[0], [first, last])
        assert await world.run(*self.command) in ({"exit": 0}, STARVED)
        await world.post_files(world.sources[0], [late])


@dataclass
class Forum(Scenario):
    topics: list[int] = field(default_factory=list)

    async def prepare(self, world):
        await super().prepare(world)
        _, self.topics = await world.open_forum("Lamps", "Clocks")

    async def post(self, world):
        forum, (lamps, clocks) = world.sources[-1], self.topics
        await world.post_files(forum, [await world.post_archive()], topic_id=lamps)
        await world.post_files(forum, world.make_volumes(), topic_id=clocks)


@dataclass
class Recovery(Scenario):
    """A worker died between a message and its row; what is killed is the recovery from that."""

    command: tuple[str, ...] = ("recover",)

    async def post(self, world):
        await world.post_archive(world.sources[0])
        ended = await world.run(*RUN, *ONE, faults="kill=telegram.messages.SendMedia:after:1")
        assert ended == {"signal": 9}
        await world.until_buried()


SCENARIOS = {
    "single": Scenario,
    "multi-part": MultiPart,
    "split": Split,
    "copy": Copy,
    "duplicate": Duplicate,
    "late part": LatePart,
    "forum": Forum,
    "recovery": Recovery,
}


def places(record: str) -> list[str]:
    """First and last reach of every failpoint of a recorded run in order; every reach if CRASH_FULL is set."""
    total = Counter(record.split())
    seen: Counter[str] = Counter()
    found = []
    for place in record.split():
        seen[place] += 1
        if EVERY_REACH or seen[place] in (1, total[place]):
            found.append(f"{place}:{seen[place]}")
    return found
