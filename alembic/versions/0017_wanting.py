"""Sets that were found wanting are found by their name: every name that is read asks for them.

Revision ID: 0017
Revises: 0016
"""

from alembic import op

revision = "0017"
down_revision = "0016"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.execute("CREATE INDEX archive_sets_wanting ON archive_sets (channel_id, family) WHERE found_wanting")


def downgrade() -> None:
    op.execute("DROP INDEX archive_sets_wanting")
