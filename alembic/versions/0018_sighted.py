"""Up to which message nothing of ours is unknown, for accounts that do not see all of a destination.

Revision ID: 0018
Revises: 0017
"""

from alembic import op

revision = "0018"
down_revision = "0017"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.execute("ALTER TABLE channels ADD COLUMN looked_to integer NOT NULL DEFAULT 0")


def downgrade() -> None:
    op.execute("ALTER TABLE channels DROP COLUMN looked_to")
