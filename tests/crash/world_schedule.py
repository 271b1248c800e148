"""What a world's schedule holds, and how a seed draws it: everything before anything happens, so that it can be told."""

import random
from dataclasses import dataclass

# What others post, edit and delete where the fleet reads; a number for each says what exactly.
SOURCE_DEEDS = (
    ("an archive is posted", 5),
    ("an archive is posted in both sources", 2),
    ("an archive is posted under a hostile name", 3),
    ("an archive is posted with a marker in its caption", 1),
    ("a set of three parts is posted", 2),
    ("two of three parts are posted, the third comes later", 2),
    ("a set comes with a damaged part, which is posted again intact", 2),
    ("a file is swapped by an edit", 2),
    ("an old file is swapped by an edit, and a hundred messages follow", 1),
    ("a message is deleted", 1),
    ("people chat", 2),
    ("the source forbids copying", 1),
    ("the source allows copying again", 1),
    ("a topic is opened and holds an archive", 1),
    ("a topic vanishes", 1),
)
# What strangers and foreign administrators do where the fleet publishes.
DESTINATION_DEEDS = (
    ("a stranger marks a file as an archive of a source", 4),
    ("a stranger marks a file with the marker of one of ours", 3),
    ("a stranger sends one of ours again, caption and all", 2),
    ("a stranger writes a marker beyond all numbers", 2),
    ("a stranger chats", 1),
    ("a foreign administrator deletes one of ours", 1),
    ("a foreign administrator deletes all of ours", 1),
    ("a foreign administrator edits the caption of one of ours", 1),
)
# What befalls the accounts, and what people do with the fleet.
FLEET_DEEDS = (
    ("an account is put out of a source and let in again", 3),
    ("an account is put out of the destination and let in again", 2),
    ("an account loses the right to post", 2),
    ("an account may post again", 1),
    ("an account gets Premium", 1),
    ("Premium lapses", 1),
    ("the clock steps ahead", 3),
    ("the clock steps back", 3),
    ("PostgreSQL forgets all locks", 3),
    ("a person pauses the fleet", 1),
    ("the fleet goes on", 2),
    ("a person leaves a set out", 2),
    ("a person tries a set again", 2),
    ("all sessions of a worker are cut at Telegram", 1),
    ("file references expire", 1),
    ("Telegram has trouble", 4),
)
# Commands beside the fleet's work: each is a process of its own, so a schedule has one of them at most.
COMMANDS = (
    "recover",
    "recover --dry-run",
    "verify",
    "rebuild",
    "accounts login",
)
# Where it hurts most to be stopped or killed; the Nth reach is drawn too.
PLACES = (
    "db.scan.page",
    "db.sets.claim",
    "lock.content",
    "db.uploads.intent",
    "db.uploads.sending",
    "telegram.messages.SendMedia",
    "db.uploads.sent",
    "db.packages.stub",
    "db.packages.complete",
)
ROUNDS = 2


@dataclass(frozen=True, slots=True)
class Deed:
    """Something that somebody does; ``number`` chooses what to do it with among whatever there is then."""

    what: str
    number: int

    def __str__(self) -> str:
        return f"{self.what} [{self.number}]"


@dataclass(frozen=True, slots=True)
class Round:
    """What happens before the workers run, where one of them is killed or stops, and what happens meanwhile."""

    before: tuple[Deed, ...]
    workers: int
    fault: str
    meanwhile: tuple[Deed, ...]
    command: str

    def __str__(self) -> str:
        lines = [f"  {deed}" for deed in self.before]
        runs = "both accounts run in one process" if self.workers == 1 else "each account runs in a process"
        lines.append(f"  {runs}{f', {self.fault}' if self.fault else ''}")
        lines += [f"    meanwhile {deed}" for deed in self.meanwhile]
        if self.command:
            lines.append(f"    meanwhile a person runs: worker {self.command}")
        return "\n".join(lines)


@dataclass(frozen=True, slots=True)
class Schedule:
    """All that a seed brings."""

    seed: int
    is_group: bool
    hides_history: bool
    has_forum: bool
    rounds: tuple[Round, ...]

    def __str__(self) -> str:
        kind = "a group" if self.is_group else "a channel"
        hidden = ", and newcomers to groups see nothing from before" if self.hides_history else ""
        forum = ", one source is a forum" if self.has_forum else ""
        rounds = [f"round {number}:\n{each}" for number, each in enumerate(self.rounds, 1)]
        return "\n".join([f"seed {self.seed}: the destination is {kind}{hidden}{forum}", *rounds])


def draw(seed: int) -> Schedule:
    """The schedule of this seed, the same every time."""
    chance = random.Random(f"world {seed}")
    is_group, hides_history, has_forum = (chance.random() < part for part in (0.5, 0.5, 0.3))
    rounds = tuple(_round(chance, number) for number in range(ROUNDS))
    return Schedule(seed, is_group, hides_history, has_forum, rounds)


def _round(chance: random.Random, number: int) -> Round:
    before = [
        *_some(chance, SOURCE_DEEDS, chance.randint(2, 4)),
        *_some(chance, DESTINATION_DEEDS, chance.randint(0, 2)),
        *_some(chance, FLEET_DEEDS, chance.randint(0, 2)),
    ]
    chance.shuffle(before)
    if not number:
        before.insert(0, Deed("an archive is posted", chance.randrange(1000)))
    action = chance.choices(("kill", "stop", ""), (3, 5, 2))[0]
    place = f"{chance.choice(PLACES)}:{chance.choice(('before', 'after'))}:{chance.randint(1, 2)}"
    meanwhile = _some(chance, SOURCE_DEEDS + DESTINATION_DEEDS + FLEET_DEEDS, chance.randint(1, 3))
    asked = number == ROUNDS - 1 and chance.random() < 0.5
    return Round(
        before=tuple(before),
        workers=1 if chance.random() < 0.8 else 2,
        fault=f"{action}={place}" if action else "",
        meanwhile=tuple(meanwhile) if action == "stop" else (),
        command=chance.choice(COMMANDS) if asked and action == "stop" else "",
    )


def _some(chance: random.Random, deeds: tuple[tuple[str, int], ...], count: int) -> list[Deed]:
    names, weights = zip(*deeds, strict=True)
    return [Deed(name, chance.randrange(1000)) for name in chance.choices(names, weights, k=count)]
