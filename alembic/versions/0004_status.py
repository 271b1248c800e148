"""What accounts are doing right now, and which sets are held back, for people to read.

Revision ID: 0004
Revises: 0003
"""

from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None

UPGRADE = (
    # How fast a step goes is counted from where it began in this process, not from the set's first byte.
    """
    CREATE TABLE account_progress (
        account_id     integer REFERENCES accounts ON DELETE CASCADE,
        set_name       text,
        step           text NOT NULL,
        done_bytes     bigint NOT NULL CHECK (done_bytes >= 0),
        total_bytes    bigint NOT NULL CHECK (total_bytes >= 0),
        started_bytes  bigint NOT NULL CHECK (started_bytes >= 0),
        started_at     timestamptz NOT NULL DEFAULT fleet_now(),
        updated_at     timestamptz NOT NULL DEFAULT fleet_now(),
        PRIMARY KEY (account_id, set_name)
    )
    """,
    # Few sets have a reason to wait; the many that are merely next in line are not in here.
    """
    CREATE INDEX archive_sets_held_back ON archive_sets (state, not_before)
    WHERE reason IS NOT NULL AND state IN ('collecting', 'ready', 'failed')
    """,
)


def upgrade() -> None:
    for statement in UPGRADE:
        op.execute(statement)


def downgrade() -> None:
    """Forget what was under way; running workers write it again."""
    op.execute("DROP INDEX archive_sets_held_back")
    op.execute("DROP TABLE account_progress")
