"""Sets that are still being formed: files find each other here, in the transaction that keeps the files.

A set is open while it is collecting, or skipped for its protection alone: late parts still change it.
Every change of its files moves its fence, so that a proof begun before judges nothing it has not read.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sqlalchemy import text

from worker.domain.archive_set import PostedFile
from worker.domain.forming import PROTECTED, UNCHECKED, Formation, FormedSet, OpenFile, form

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from sqlalchemy import Row
    from sqlalchemy.ext.asyncio import AsyncConnection

# More open sets, or files, of one name than this are nothing that anybody posts. Those of each poster are
# looked at in turn, new ones first and small ones before large: nobody else's keep a late part from its set.
_MOST_OPEN = 2_000
_MOST_FILES = 20_000

# Accounts with cursors of their own may read one channel at the same time: they form its sets in turn.
_LOCK_CHANNEL = text("SELECT 1 FROM channels WHERE id = :channel FOR NO KEY UPDATE")
_IS_OPEN = """s.channel_id = :channel AND s.family = :family AND s.state IN ('collecting', 'skipped')
          AND (s.state = 'collecting' OR s.reason = :protected)"""
# Relies on archive_sets_open and source_files_order_key.
_LOCK_OPEN = text(f"""
    SELECT s.id, s.part_count FROM archive_sets s
    WHERE {_IS_OPEN} AND s.id IN (
        SELECT turn.id FROM (
            SELECT o.id, sum(o.part_count) OVER (
                ORDER BY o.newer, o.part_count, o.id DESC) - o.part_count AS files
            FROM (
                SELECT s.id, s.part_count, sum(s.part_count) OVER (
                    PARTITION BY l.poster_id ORDER BY s.id DESC) - s.part_count AS newer
                FROM archive_sets s LEFT JOIN LATERAL (
                    SELECT poster_id FROM source_files WHERE set_id = s.id ORDER BY part_number LIMIT 1
                ) l ON true WHERE {_IS_OPEN}
            ) o ORDER BY o.newer, o.part_count, o.id DESC LIMIT {_MOST_OPEN}
        ) turn WHERE turn.files < {_MOST_FILES})
    ORDER BY s.id DESC FOR UPDATE OF s
""")
# Relies on source_files_loose and source_files_order_key.
_FILES = text(f"""
    SELECT f.id, f.set_id, f.message_id, f.document_id, f.file_name, f.size, f.poster_id, f.album_id,
        f.reply_to, f.topic_id, extract(epoch FROM f.posted_at)::bigint AS date,
        (c.is_protected OR f.is_protected) AND NOT c.allow_protected AS is_protected
    FROM channels c, (
        (SELECT * FROM source_files WHERE set_id = ANY(:sets) AND NOT is_gone)
        UNION ALL
        (SELECT * FROM source_files WHERE id IN (
            SELECT turn.id FROM (
                SELECT id, message_id, row_number() OVER (
                    PARTITION BY poster_id ORDER BY message_id DESC) AS newer
                FROM source_files WHERE channel_id = :channel AND family = :family AND set_id IS NULL
                    AND NOT is_gone AND superseded_by IS NULL
            ) turn ORDER BY turn.newer, turn.message_id DESC LIMIT {_MOST_OPEN}))
    ) f WHERE c.id = :channel
""")
# Files that may take the place of a part: in no set, or in one that cannot be whole with them alone.
NEWER = """
    SELECT l.* FROM source_files l WHERE l.channel_id = :channel AND l.family = :family AND l.set_id IS NULL
        AND NOT l.is_gone AND l.superseded_by IS NULL
    UNION ALL
    SELECT i.* FROM archive_sets d JOIN source_files i ON i.set_id = d.id
    WHERE d.channel_id = :channel AND d.family = :family AND d.state = 'collecting' AND NOT d.to_prove
        AND NOT i.is_gone
"""
# Of the files of one name in one place so many of the newest may take it: as many as are ever tried, and what
# the set itself has among them.
_MOST_COPIES = 8
# SQL: those files, each document once.
LATEST = f"""
    SELECT * FROM (
        SELECT d.*, row_number() OVER (
            PARTITION BY d.poster_id, d.topic_id, d.name ORDER BY d.message_id DESC) AS place
        FROM (
            SELECT DISTINCT ON (f.poster_id, f.topic_id, lower(f.file_name), f.document_id)
                f.id, f.message_id, f.document_id, f.file_name, f.size, f.set_id, f.poster_id, f.topic_id,
                lower(f.file_name) AS name
            FROM ({NEWER}) f
            ORDER BY f.poster_id, f.topic_id, lower(f.file_name), f.document_id, f.message_id DESC
        ) d
    ) l WHERE l.place <= {_MOST_COPIES}
"""
# A set for which so many files were tried is asked again by a person alone.
MOST_TRIED = 2_000
# SQL: by message of a file that has replaced others, the first of them and how many they are. One pass over
# the family, whatever asks: looked up file by file it would take time by the square of what is posted.
# Relies on source_files_loose, which leaves out what has no family.
REPLACED = """
    SELECT r.superseded_by AS message_id, min(r.message_id) AS first, count(*) AS had FROM source_files r
    WHERE r.channel_id = :channel AND r.family = :family AND r.family <> '' AND r.set_id IS NULL
        AND r.superseded_by IS NOT NULL
    GROUP BY r.superseded_by
"""
_MOST_ASKED = 20
_DETACH = text("UPDATE source_files SET set_id = NULL, part_number = NULL WHERE id = ANY(:files)")
_ATTACH = text("""
    UPDATE source_files f SET set_id = :set, part_number = p.number
    FROM unnest(CAST(:files AS bigint[]), CAST(:numbers AS integer[])) AS p (file, number) WHERE f.id = p.file
""")
_SHAPE = """
    name = :name, format = :format, state = :state, reason = :reason, to_prove = :to_prove,
    part_count = :count, total_size = :size, lead_document_id = :lead, topic_id = :topic,
    posted_at = to_timestamp(:posted), content_hash = NULL, found_wanting = false, tried = '{}',
    unended = 0, undecided_since = NULL, is_unproven = false,
    attempts = 0, not_before = fleet_now(),
    updated_at = fleet_now()
"""
_RESHAPE = text(f"UPDATE archive_sets SET {_SHAPE}, fence = fence + 1 WHERE id = :set")
_INSERT = text("""
    INSERT INTO archive_sets (channel_id, family, name, format, state, reason, to_prove, part_count,
        total_size, lead_document_id, topic_id, posted_at)
    VALUES (:channel, :family, :name, :format, :state, :reason, :to_prove, :count,
        :size, :lead, :topic, to_timestamp(:posted))
    RETURNING id
""")
# A set that once began to be published keeps its row: its uploads name it.
_DISSOLVE = (
    text("""
        UPDATE archive_sets SET state = 'skipped', reason = 'its files belong to other sets',
            to_prove = false, fence = fence + 1, updated_at = fleet_now()
        WHERE id = ANY(:sets) AND EXISTS (SELECT FROM uploads u WHERE u.set_id = archive_sets.id)
    """),
    text("""
        DELETE FROM archive_sets
        WHERE id = ANY(:sets) AND NOT EXISTS (SELECT FROM uploads u WHERE u.set_id = archive_sets.id)
    """),
)


_EMPTIED = text("""
    UPDATE archive_sets SET state = 'skipped', reason = 'its messages are gone from their channel',
        to_prove = false, fence = fence + 1, updated_at = fleet_now()
    WHERE id = ANY(:sets)
""")


# A part posted again carries the name of the one that it is to replace. Asked for every name that is read.
# Nobody posts more sets of one name that are not whole: the newest of those are asked, so that a file costs
# so many proofs, not one for every set. Relies on archive_sets_wanting, archive_sets_open and
# source_files_order_key.
_MOST_WANTING = 20
# Said of the row itself too: whoever claims it at this moment has it.
_CAN_BE_ASKED = "(state = 'collecting' AND NOT to_prove OR state IN ('ready', 'failed'))"
_ASK_AGAIN = text(f"""
    WITH newer AS MATERIALIZED ({LATEST}), replaced AS MATERIALIZED ({REPLACED}), wanting AS MATERIALIZED (
        SELECT s.id, s.tried, s.state, s.to_prove,
            row_number() OVER (PARTITION BY l.poster_id, l.topic_id ORDER BY s.id DESC) AS place
        FROM archive_sets s CROSS JOIN LATERAL (
            SELECT poster_id, topic_id FROM source_files WHERE set_id = s.id ORDER BY part_number LIMIT 1) l
        WHERE s.channel_id = :channel AND s.family = :family AND s.found_wanting AND s.state <> 'skipped'
    )
    UPDATE archive_sets SET state = 'collecting', reason = :unchecked, to_prove = true, attempts = 0,
        not_before = fleet_now(), fence = fence + 1, updated_at = fleet_now()
    WHERE {_CAN_BE_ASKED} AND id IN (
        SELECT s.id FROM wanting s
        WHERE s.place <= {_MOST_WANTING} AND cardinality(s.tried) < {MOST_TRIED}
          AND {_CAN_BE_ASKED}
          AND NOT EXISTS (SELECT FROM uploads u WHERE u.set_id = s.id AND u.state = 'open')
          AND EXISTS (SELECT FROM source_files o JOIN newer f
                      ON f.poster_id IS NOT DISTINCT FROM o.poster_id AND f.topic_id = o.topic_id
                         AND f.name = lower(o.file_name)
                      LEFT JOIN replaced r ON r.message_id = o.message_id
                      WHERE o.set_id = s.id AND f.document_id <> ALL (s.tried)
                        AND f.document_id <> o.document_id
                        AND f.message_id > least(o.message_id, r.first)
                        AND f.set_id IS DISTINCT FROM s.id)
        ORDER BY s.id DESC LIMIT :most)
""")


async def form_sets(connection: AsyncConnection, channel_id: int, families: Iterable[str]) -> int:
    """Form the open files of these families into sets; how many there are that were not before."""
    made = 0
    await lock_channel(connection, channel_id)
    for family in sorted(set(families)):
        formation = await _formation(connection, channel_id, family)
        await _write(connection, channel_id, family, formation)
        await ask_again(connection, channel_id, family)
        made += sum(formed.set_id is None for formed in formation.sets)
    return made


async def ask_again(connection: AsyncConnection, channel_id: int, family: str) -> None:
    """Sets of the family that are not whole are proven again if a part of theirs was posted again since."""
    values = {"channel": channel_id, "family": family, "unchecked": UNCHECKED, "most": _MOST_ASKED}
    await connection.execute(_ASK_AGAIN, values)


async def dissolve(connection: AsyncConnection, sets: Collection[int]) -> None:
    """These sets have no files any more: those went to other sets."""
    if sets:
        for statement in _DISSOLVE:
            await connection.execute(statement, {"sets": list(sets)})


async def lock_channel(connection: AsyncConnection, channel_id: int) -> None:
    """Have the channel's files and open sets to ourselves. Taken before any of their rows is written."""
    await connection.execute(_LOCK_CHANNEL, {"channel": channel_id})


async def _formation(connection: AsyncConnection, channel_id: int, family: str) -> Formation:
    values: dict[str, Any] = {"channel": channel_id, "family": family, "protected": PROTECTED}
    locked = {row.id: row.part_count for row in await connection.execute(_LOCK_OPEN, values)}
    rows = await connection.execute(_FILES, {**values, "sets": list(locked)})
    return form([_open_file(row) for row in rows], locked)


def _open_file(row: Row[Any]) -> OpenFile:
    posted = PostedFile(
        message_id=row.message_id,
        document_id=row.document_id,
        file_name=row.file_name,
        size=row.size,
        date=row.date,
        poster_id=row.poster_id,
        album_id=row.album_id,
        reply_to=row.reply_to,
        topic_id=row.topic_id,
    )
    return OpenFile(row.id, row.set_id, posted, row.is_protected)


async def _write(connection: AsyncConnection, channel_id: int, family: str, formation: Formation) -> None:
    moving = [file for formed in formation.sets for file, _ in formed.parts]
    await _detach(connection, (*moving, *formation.loose))
    for formed in formation.sets:
        values = {"channel": channel_id, "family": family, **_columns(formed)}
        if formed.set_id is None:
            set_id = (await connection.execute(_INSERT, values)).scalar_one()
        else:
            set_id = formed.set_id
            await connection.execute(_RESHAPE, {**values, "set": set_id})
        files, numbers = zip(*formed.parts, strict=True)
        await connection.execute(_ATTACH, {"set": set_id, "files": files, "numbers": numbers})
    await dissolve(connection, formation.dissolved)
    if formation.emptied:
        await connection.execute(_EMPTIED, {"sets": list(formation.emptied)})


async def _detach(connection: AsyncConnection, files: Collection[int]) -> None:
    if files:
        await connection.execute(_DETACH, {"files": list(files)})


def _columns(formed: FormedSet) -> dict[str, Any]:
    return {
        "name": formed.name,
        "format": formed.format,
        "state": formed.state,
        "reason": formed.reason,
        "to_prove": formed.to_prove,
        "count": len(formed.parts),
        "size": formed.total_size,
        "lead": formed.lead.document_id,
        "topic": formed.lead.topic_id or 0,
        "posted": float(formed.lead.date),
    }
