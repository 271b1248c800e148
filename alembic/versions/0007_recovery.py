"""What recovery has to remember: messages that were removed, and sets that wait for the same content.

Revision ID: 0007
Revises: 0006
"""

from alembic import op

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None

UPGRADE = (
    "ALTER TABLE upload_parts ADD COLUMN deleted_at timestamptz",
    # The end of an upload wakes the sets that waited for it.
    "CREATE INDEX archive_sets_content ON archive_sets (content_hash) WHERE content_hash IS NOT NULL",
)


def upgrade() -> None:
    for statement in UPGRADE:
        op.execute(statement)


def downgrade() -> None:
    """Messages that were removed look as if they stood; recovery finds them gone and leaves it at that."""
    op.execute("DROP INDEX archive_sets_content")
    op.execute("ALTER TABLE upload_parts DROP COLUMN deleted_at")
