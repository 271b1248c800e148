"""How far destinations have been gone through for messages that no row knows.

Revision ID: 0012
Revises: 0011
"""

from alembic import op

revision = "0012"
down_revision = "0011"
branch_labels = None
depends_on = None

UPGRADE = (
    # NULL: no look is under way.
    "ALTER TABLE channels ADD COLUMN look_from integer",
    "ALTER TABLE channels ADD COLUMN recovered_to integer NOT NULL DEFAULT 0",
)


def upgrade() -> None:
    for statement in UPGRADE:
        op.execute(statement)


def downgrade() -> None:
    op.execute("ALTER TABLE channels DROP COLUMN recovered_to")
    op.execute("ALTER TABLE channels DROP COLUMN look_from")
