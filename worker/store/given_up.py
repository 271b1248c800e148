"""Uploads that a person has given up: the decision, written down before anything is done about it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlalchemy import text

from worker.errors import UserError
from worker.store.open_intents import BEGUN, Begun
from worker.store.visibility import may_see_from

if TYPE_CHECKING:
    from worker.store.database import Database

_OF_SET = text(BEGUN.format(which="u.set_id = :set"))
_DECIDE = text("""
    WITH decided AS (
        UPDATE uploads SET reason = coalesce(reason, :reason) WHERE id = :upload AND state = 'open'
        RETURNING set_id
    )
    UPDATE archive_sets SET not_before = fleet_now() WHERE id IN (SELECT set_id FROM decided)
""")
# Whoever may post there may take back what stands there, and who was asked what it sees need not be asked.
_COULD_LOOK = text(f"""
    SELECT a.id FROM uploads u JOIN channels c ON c.id = u.destination_id
    JOIN memberships m ON m.channel_id = c.id AND m.can_read
    JOIN accounts a ON a.id = m.account_id AND a.state = 'ready'
    WHERE u.id = :upload AND {may_see_from("u.floor_id + 1")}
    ORDER BY a.id <> u.account_id, NOT m.can_post, m.visible_from IS NULL, a.id
""")


async def decide_to_give_up(database: Database, set_id: int, reason: str) -> Begun:
    """A person's word that what was begun with this set ends without a package, whoever began it.

    The fence stays: whoever is at work on it this moment may still finish, and that is the better end.
    """
    begun = await begun_with(database, set_id)
    async with database.transaction("uploads.decide") as connection:
        await connection.execute(_DECIDE, {"upload": begun.upload_id, "reason": reason})
    return begun


async def begun_with(database: Database, set_id: int) -> Begun:
    """The upload that was begun with this set and has not ended."""
    async with database.reading() as connection:
        row = (await connection.execute(_OF_SET, {"set": set_id})).one_or_none()
    if row is None:
        raise UserError(
            f"no upload of set {set_id} has begun and not ended",
            remedy=f"to leave a set out: worker sets skip {set_id}",
        )
    return Begun(*row)


async def state_of(database: Database, upload_id: int) -> str:
    """``open``, ``done`` if it was published after all, or ``abandoned``."""
    async with database.reading() as connection:
        query = text("SELECT state FROM uploads WHERE id = :upload")
        return str((await connection.execute(query, {"upload": upload_id})).scalar_one())


async def could_look(database: Database, upload_id: int) -> list[int]:
    """The accounts that work and see all that this upload may have sent, or may: they are asked first."""
    async with database.reading() as connection:
        rows = await connection.execute(_COULD_LOOK, {"upload": upload_id})
        return list(rows.scalars())
