"""Which documents were tried in the place of a set's parts, in place of the newest message among them.

Revision ID: 0019
Revises: 0018
"""

from alembic import op

revision = "0019"
down_revision = "0018"
branch_labels = None
depends_on = None


def upgrade() -> None:
    # What was tried before is tried once more: of older files nobody has written down which they were.
    op.execute("ALTER TABLE archive_sets DROP COLUMN newest_tried")
    op.execute("ALTER TABLE archive_sets ADD COLUMN tried bigint[] NOT NULL DEFAULT '{}'")


def downgrade() -> None:
    op.execute("ALTER TABLE archive_sets DROP COLUMN tried")
    op.execute("ALTER TABLE archive_sets ADD COLUMN newest_tried integer NOT NULL DEFAULT 0")
