"""Files that may take the place of a set's parts, since they were posted again under the same names."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlalchemy import text

from worker.domain.forming import set_name
from worker.domain.replacing import Replaced
from worker.errors import RetryableError
from worker.store.collecting import LATEST, MOST_TRIED, REPLACED, dissolve, form_sets, lock_channel
from worker.store.sets import SourcePart

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from worker.domain.archive_set import ArchiveSet
    from worker.store.database import Database
    from worker.store.proofs import Unproven

# Each document once, so that all are told of by what is written down of them.
_OTHERS = text(f"""
    WITH latest AS MATERIALIZED ({LATEST}), own AS MATERIALIZED (
        SELECT DISTINCT poster_id, topic_id FROM source_files WHERE set_id = :set
    ), names AS MATERIALIZED (SELECT DISTINCT lower(file_name) AS name FROM source_files WHERE set_id = :set)
    SELECT d.id, d.message_id, d.document_id, d.file_name, d.size FROM (
        SELECT DISTINCT ON (f.document_id) f.*, f.name IN (SELECT name FROM names) AS is_named
        FROM latest f JOIN own o ON o.poster_id IS NOT DISTINCT FROM f.poster_id AND o.topic_id = f.topic_id
        WHERE f.set_id IS DISTINCT FROM :set
        ORDER BY f.document_id, is_named DESC, f.message_id DESC
    ) d ORDER BY d.is_named DESC, d.message_id DESC LIMIT {MOST_TRIED}
""")
_REPLACED = text(f"""
    SELECT r.message_id, r.first, r.had FROM ({REPLACED}) r
    JOIN source_files o ON o.set_id = :set AND o.message_id = r.message_id
""")
_SETTLE = text("""
    UPDATE archive_sets SET state = 'ready', reason = NULL, to_prove = false, found_wanting = false,
        tried = '{}', unended = 0, undecided_since = NULL, is_unproven = false, name = :name,
        part_count = :count, total_size = :size, lead_document_id = :lead,
        content_hash = NULL, attempts = 0, not_before = fleet_now(), fence = fence + 1,
        updated_at = fleet_now()
    WHERE id = :set AND fence = :fence AND state = 'collecting' AND to_prove
    RETURNING family
""")
_GIVERS = text("""
    SELECT DISTINCT set_id FROM source_files WHERE id = ANY(:files) AND set_id IS NOT NULL
""")
# What a file replaced before is replaced by the file that takes its place. Relies on source_files_loose.
_INHERIT = text("""
    UPDATE source_files f SET superseded_by = p.message
    FROM unnest(CAST(:old AS bigint[]), CAST(:messages AS integer[])) AS p (file, message)
    JOIN source_files o ON o.id = p.file
    WHERE f.channel_id = o.channel_id AND f.family = o.family AND f.family <> '' AND f.set_id IS NULL
      AND f.superseded_by = o.message_id
""")
_SUPERSEDE = text("""
    UPDATE source_files f SET set_id = NULL, part_number = NULL, superseded_by = p.message
    FROM unnest(CAST(:old AS bigint[]), CAST(:messages AS integer[])) AS p (file, message)
    WHERE f.id = p.file AND f.set_id = :set
""")
_TAKE = text("""
    UPDATE source_files f SET set_id = :set, part_number = p.number
    FROM unnest(CAST(:files AS bigint[]), CAST(:documents AS bigint[]), CAST(:numbers AS integer[]))
        AS p (file, document, number)
    WHERE f.id = p.file AND f.document_id = p.document AND NOT f.is_gone AND (f.set_id IS NULL OR EXISTS (
        SELECT FROM archive_sets d WHERE d.id = f.set_id AND d.state = 'collecting' AND NOT d.to_prove))
""")
_LEFT_EMPTY = text("""
    SELECT id FROM archive_sets s WHERE id = ANY(:sets)
        AND NOT EXISTS (SELECT FROM source_files f WHERE f.set_id = s.id)
""")


async def files_beside(database: Database, unproven: Unproven) -> list[SourcePart]:
    """The latest files of the set's name and poster that no other set can be whole with."""
    async with database.reading() as connection:
        values = {
            "channel": unproven.channel_id,
            "family": unproven.family,
            "set": unproven.set_id,
        }
        return [SourcePart(*row) for row in await connection.execute(_OTHERS, values)]


async def replaced_by(database: Database, unproven: Unproven) -> dict[int, Replaced]:
    """By message of each part that has replaced others, what it has replaced."""
    async with database.reading() as connection:
        values = {"channel": unproven.channel_id, "family": unproven.family, "set": unproven.set_id}
        rows = await connection.execute(_REPLACED, values)
        return {row.message_id: Replaced(row.first, row.had) for row in rows}


async def settle_with_newer(
    database: Database, unproven: Unproven, whole: ArchiveSet, newer: Mapping[int, SourcePart]
) -> bool:
    """The set is whole with these newer files, by message; those that they replace belong to no set.

    False if its own files have changed meanwhile.
    """
    taken = [member for member in whole.members if member.file.message_id in newer]
    old = _replaced(unproven.parts, whole)
    files = [newer[member.file.message_id].source_file_id for member in taken]
    async with database.transaction("proofs.newer") as connection:
        await lock_channel(connection, unproven.channel_id)
        values = {
            "set": unproven.set_id,
            "fence": unproven.fence,
            "name": set_name(whole),
            "count": len(whole.parts),
            "size": sum(part.size for part in whole.parts),
            "lead": whole.parts[0].document_id,
        }
        family = (await connection.execute(_SETTLE, values)).scalar_one_or_none()
        if family is None:
            return False
        givers = list((await connection.execute(_GIVERS, {"files": files})).scalars())
        by = [member.file.message_id for member in taken]
        await connection.execute(_INHERIT, {"old": old, "messages": by})
        await connection.execute(_SUPERSEDE, {"old": old, "messages": by, "set": unproven.set_id})
        taking = {
            "set": unproven.set_id,
            "files": files,
            "documents": [member.file.document_id for member in taken],
            "numbers": [member.name.index for member in taken],
        }
        if (await connection.execute(_TAKE, taking)).rowcount != len(files):
            raise RetryableError(f"the files beside set {unproven.set_id} changed while they were looked at")
        empty = (await connection.execute(_LEFT_EMPTY, {"sets": givers})).scalars()
        await dissolve(connection, list(empty))
        await form_sets(connection, unproven.channel_id, [family])
        return True


def _replaced(parts: Sequence[SourcePart], whole: ArchiveSet) -> list[int]:
    """The rows of the set's own files that are not among the whole, in the order of their numbers."""
    kept = {part.message_id for part in whole.parts}
    return [part.source_file_id for part in parts if part.message_id not in kept]
