"""Disk space that sets in flight have been promised, and how often a set was told to wait.

Revision ID: 0010
Revises: 0009
"""

from alembic import op

revision = "0010"
down_revision = "0009"
branch_labels = None
depends_on = None

UPGRADE = (
    # A row without a fence is a set that asks for more than is free: others leave it that much.
    """
    CREATE TABLE disk_reservations (
        set_id         bigint PRIMARY KEY REFERENCES archive_sets ON DELETE CASCADE,
        volume         text NOT NULL,
        fence          bigint,
        bytes          bigint NOT NULL CHECK (bytes >= 0),
        written_bytes  bigint NOT NULL DEFAULT 0 CHECK (written_bytes >= 0),
        reserved_at    timestamptz NOT NULL DEFAULT fleet_now()
    )
    """,
    "CREATE INDEX disk_reservations_volume ON disk_reservations (volume)",
    # Waits in a row, none of them the set's own fault: each is longer than the one before.
    "ALTER TABLE archive_sets ADD COLUMN waits integer NOT NULL DEFAULT 0",
)


def upgrade() -> None:
    for statement in UPGRADE:
        op.execute(statement)


def downgrade() -> None:
    """Forget what is reserved; running workers of an earlier version do not ask."""
    op.execute("ALTER TABLE archive_sets DROP COLUMN waits")
    op.execute("DROP TABLE disk_reservations")
