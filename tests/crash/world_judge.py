"""What the ledger says of a world that has come to rest: what is ours, what is theirs, what is there once, what is lost."""

from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path

import invariants
from others import Others

from worker.domain.archive_name import recognise
from worker.domain.marker import find_marker

# What a log must not hold: a mistake of the program, not of the world.
_BUGS = ("Traceback (most recent call last)", "internal error", "please report this")


async def judge(others: Others) -> list[str]:
    """Everything that is wrong, a line each."""
    world = others.world
    listed = {message["id"]: message for message in await world.admin.messages(world.destination)}
    problems = [*_strangers(others, listed), *await _counted_as_ours(others)]
    problems += await _contents(others, listed)
    left = await world.unfinished()
    problems += [f"left undone: {left}"] if left else []
    problems += [f"called too early: {call['method']}" for call in await world.admin.calls() if call["early"]]
    try:
        await invariants.check_connections(world)
        invariants.check_logs(world)
    except AssertionError as error:
        problems.append(str(error).splitlines()[0])
    return problems + [
        f"{log.name} tells of a bug: {_said_in(log)}" for log in world.workers.logs if _said_in(log)
    ]


def _said_in(log: Path) -> str:
    """What a log says that no log should; libraries may say what befell them."""
    lines = [line for line in log.read_text().splitlines() if '"logger": "sqlalchemy' not in line]
    first = next((number for number, line in enumerate(lines) if any(bug in line for bug in _BUGS)), None)
    if first is None:
        return ""
    # The error itself is the last line of a traceback, the first that is not indented.
    rest = (line for line in lines[first + 1 :] if line and not line.startswith((" ", "\t")))
    return f"{lines[first][:200]} … {next(rest, '')[:300]}"


def _strangers(others: Others, listed: dict[int, dict]) -> Iterator[str]:
    """What strangers have posted is theirs, and stands as they posted it."""
    for message_id, (text, sha256) in others.strangers.items():
        message = listed[message_id]
        if message["deleted"] and message_id not in others.deleted:
            yield f"message {message_id} of a stranger was deleted"
        elif (message["text"], message["sha256"]) != (text, sha256):
            yield f"message {message_id} of a stranger was changed"


async def _counted_as_ours(others: Others) -> list[str]:
    rows = await others.world.fetch(
        """
        SELECT 'a package' AS what, message_id FROM package_parts
        UNION ALL SELECT 'an upload', message_id FROM upload_parts WHERE message_id IS NOT NULL
        """
    )
    return [
        f"message {row['message_id']} of a stranger counts as part of {row['what']}"
        for row in rows
        if row["message_id"] in others.strangers
    ]


async def _contents(others: Others, listed: dict[int, dict]) -> list[str]:
    """Each content that the sources hold is there once and whole, and the rows know it."""
    ours = {message["id"]: message for message in await others.ours()}
    windows: dict[bytes, list[tuple[int, int, int]]] = defaultdict(list)
    for number, message in ours.items():
        if (marker := find_marker(message["text"])) is not None:
            windows[marker.content_hash].append((marker.offset, marker.length, number))
    packages = await others.world.fetch(
        """
        SELECT p.content_hash, p.state, array_agg(k.message_id ORDER BY k.ordinal) AS ids
        FROM packages p JOIN package_parts k ON k.package_id = p.id GROUP BY p.id
        """
    )
    rows = {row["content_hash"]: row for row in packages}
    problems = []
    for content_hash, found in windows.items():
        twice = {window for window, count in Counter((o, n) for o, n, _ in found).items() if count > 1}
        problems += [f"{content_hash.hex()[:12]} stands there twice: {sorted(twice)}"] if twice else []
    for row in packages:
        missing = [number for number in row["ids"] if number not in ours and number not in others.deleted]
        if row["state"] == "published" and missing:
            problems.append(f"a package names messages that are not ours: {missing}")
    due = await _due(others)
    for content in others.contents:
        row = rows.get(content.hash)
        if content.parts not in due or (row and others.deleted & set(row["ids"])):
            continue
        if row is None or row["state"] != "published":
            problems.append(f"lost: {content.name} ({await _said_of(others, content.parts[0])})")
        elif not others.edited & set(row["ids"]):
            problems += _check_bytes(content, [listed[number] for number in row["ids"]])
    return problems


def _check_bytes(content, messages: list[dict]) -> Iterator[str]:
    """Nothing here is cut into parts: each file became one message."""
    if [message["sha256"] for message in messages] != list(content.parts):
        yield f"{content.name}: other bytes at the destination than at the source"


async def _due(others: Others) -> set[tuple[str, ...]]:
    """Contents all of whose files stand in one source, under names that say what they are."""
    due = set()
    for source in others.world.sources:
        places: dict[int, set[str]] = defaultdict(set)
        for message in await others.files_of(source):
            # A name that no database could hold is set aside, and counted.
            if recognise(message["file_name"]) is not None and len(message["file_name"]) < 4096:
                places[message["topic_id"] or 1].add(message["sha256"])
        due |= {
            content.parts
            for content in others.contents
            if any(set(content.parts) <= there for there in places.values())
        }
    return due


async def _said_of(others: Others, sha256: str) -> str:
    """What the fleet says of the set that a file belongs to."""
    for source in others.world.sources:
        for message in await others.files_of(source):
            if message["sha256"] == sha256:
                rows = await others.world.fetch(
                    """
                    SELECT s.state, s.reason FROM source_files f JOIN channels c ON c.id = f.channel_id
                    LEFT JOIN archive_sets s ON s.id = f.set_id
                    WHERE c.telegram_id = $1 AND f.message_id = $2
                    """,
                    source,
                    message["id"],
                )
                said = [f"{row['state']}: {row['reason']}" for row in rows]
                return f"message {message['id']} of {source}: {said or 'it has no row'}"
    return "it stands nowhere"
