"""A database's clock that steps back: what was to wait for a while does not wait out the step as well."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlalchemy import text

if TYPE_CHECKING:
    from worker.store.database import Database

# A row that was changed later than now was changed before the step: its time goes back with it, as if none
# had passed since. Rely on archive_sets_claimable, archive_sets_claims, archive_sets_to_prove.
_SETS = [
    text(f"""
        UPDATE archive_sets SET not_before = not_before - (updated_at - fleet_now()), updated_at = fleet_now()
        WHERE {state} AND not_before > fleet_now() AND updated_at > fleet_now()
    """)
    for state in ("state = 'ready'", "state = 'claimed'", "state = 'collecting' AND to_prove")
]
# Relies on packages_pending.
_PACKAGES = text("""
    UPDATE packages SET metadata_not_before = fleet_now()
    WHERE metadata = 'pending' AND state = 'published' AND metadata_not_before > fleet_now()
      AND published_at > fleet_now()
""")


async def bring_back_waits(database: Database) -> int:
    """Let nothing wait longer than it was told to; how much had to wait for a clock."""
    async with database.transaction("sweep.bring_back") as connection:
        return sum([(await connection.execute(statement)).rowcount for statement in (*_SETS, _PACKAGES)])
