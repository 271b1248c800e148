"""What may stand of packages that were withdrawn because another message of them is gone."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from sqlalchemy import text

from worker.store.removals import LEFT, Removable
from worker.store.sets import wake_waiting
from worker.store.visibility import MAY_SEE_ALL

if TYPE_CHECKING:
    from worker.store.database import Database


@dataclass(frozen=True, slots=True)
class Remains:
    """A withdrawn package of which other messages may stand."""

    package_id: int
    content_hash: bytes
    name: str
    channel_id: int


# Relies on uploads_package.
_OF_PACKAGE = text(
    LEFT.format(
        which="""u.state <> 'open' AND u.package_id = :package
            AND EXISTS (SELECT FROM packages w WHERE w.id = :package AND w.state = 'withdrawn'
                        AND w.dest_channel_id = u.destination_id)"""
    )
)
_WITH_REMAINS = """
    SELECT p.id, p.content_hash, p.file_name, p.dest_channel_id FROM packages p
    WHERE p.has_remains AND p.state = 'withdrawn' AND {which}
"""
# Relies on packages_remains.
_IN_CHANNEL = text(_WITH_REMAINS.format(which="p.dest_channel_id = :channel ORDER BY p.id LIMIT :limit"))
# Where an upload of the content is open, that is what is waited for. Relies on uploads_one_live_intent.
_BEHIND_SET = text(
    _WITH_REMAINS.format(
        which="""p.content_hash = (
            SELECT content_hash FROM archive_sets WHERE id = :set AND state IN ('ready', 'claimed'))
        AND NOT EXISTS (SELECT FROM uploads u WHERE u.content_hash = p.content_hash AND u.state = 'open')"""
    )
)
_COULD_TAKE_BACK = text(f"""
    SELECT a.id FROM channels c JOIN memberships m ON m.channel_id = c.id AND m.can_read
    JOIN accounts a ON a.id = m.account_id AND a.state = 'ready'
    WHERE c.id = :channel AND {MAY_SEE_ALL} ORDER BY a.id
""")
# The word is kept on what sent the package, as on an upload that is given up. Relies on uploads_package.
_LEAVE = text("""
    UPDATE uploads u SET reason = :reason FROM packages p
    WHERE p.id = :package AND p.state = 'withdrawn' AND p.has_remains
      AND u.package_id = p.id AND u.destination_id = p.dest_channel_id
""")


async def packages_with_remains(database: Database, channel_id: int, limit: int = 100) -> list[Remains]:
    """Withdrawn packages whose other messages have to be taken back from this channel, oldest first."""
    async with database.reading() as connection:
        values = {"channel": channel_id, "limit": limit}
        return [Remains(*row) for row in await connection.execute(_IN_CHANNEL, values)]


async def remains_behind(database: Database, set_id: int) -> Remains | None:
    """What this set waits for, if it is to be published and that is what stands of a withdrawn package."""
    async with database.reading() as connection:
        row = (await connection.execute(_BEHIND_SET, {"set": set_id})).one_or_none()
        return None if row is None else Remains(*row)


async def left_of_package(database: Database, package_id: int) -> list[Removable]:
    """What uploads sent of this package, if it is withdrawn and as far as it may stand."""
    async with database.reading() as connection:
        rows = await connection.execute(_OF_PACKAGE, {"package": package_id})
        return [Removable(*row) for row in rows]


async def could_take_back(database: Database, remains: Remains) -> list[int]:
    """The accounts that work and see all of the channel, or may: whoever waits for it waits for them."""
    async with database.reading() as connection:
        rows = await connection.execute(_COULD_TAKE_BACK, {"channel": remains.channel_id})
        return list(rows.scalars())


async def leave_remains(database: Database, remains: Remains, reason: str) -> bool:
    """A person's word that its content waits for these no longer; false if nothing is left of them by now.

    They are taken back as before by the first account that can. Called under the content's lock.
    """
    async with database.transaction("remains.leave") as connection:
        values = {"package": remains.package_id, "reason": reason}
        if not (await connection.execute(_LEAVE, values)).rowcount:
            return False
        await wake_waiting(connection, remains.content_hash)
        return True


async def settle_remains(database: Database, remains: Remains) -> None:
    """Nothing is left that is ours to take back; its content goes on. Called under the content's lock."""
    async with database.transaction("remains.settle") as connection:
        query = text("""
            UPDATE packages SET has_remains = false
            WHERE id = :package AND state = 'withdrawn' AND has_remains
        """)
        await connection.execute(query, {"package": remains.package_id})
        await wake_waiting(connection, remains.content_hash)
