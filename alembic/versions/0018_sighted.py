"""Up to which message nothing of ours is unknown, and which volume has turned a set away.

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
    # NULL: what the set waits for holds for every host.
    op.execute("ALTER TABLE archive_sets ADD COLUMN turned_away_by text")


def downgrade() -> None:
    op.execute("ALTER TABLE archive_sets DROP COLUMN turned_away_by")
    op.execute("ALTER TABLE channels DROP COLUMN looked_to")
