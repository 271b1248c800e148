"""Forum topics are read one by one, and what an account cannot see of a channel is known.

Revision ID: 0008
Revises: 0007
"""

from alembic import op

revision = "0008"
down_revision = "0007"
branch_labels = None
depends_on = None

UPGRADE = (
    # What stands at the destination is known when somebody posts it again.
    """
    CREATE INDEX package_parts_document ON package_parts (document_id) WHERE document_id IS NOT NULL
    """,
    # Not set where nobody asked yet; broadcast channels show everything to everybody.
    "ALTER TABLE memberships ADD COLUMN visible_from integer",
    """
    UPDATE memberships m SET visible_from = 0 FROM channels c WHERE c.id = m.channel_id AND c.kind = 'channel'
    """,
    # What was read of a forum as one channel belongs to a topic: General, unless it says otherwise.
    """
    UPDATE source_files f SET topic_id = 1 FROM channels c
    WHERE c.id = f.channel_id AND c.kind = 'forum' AND f.topic_id = 0
    """,
    """
    UPDATE archive_sets s SET topic_id = 1 FROM channels c
    WHERE c.id = s.channel_id AND c.kind = 'forum' AND s.topic_id = 0
    """,
)


def upgrade() -> None:
    for statement in UPGRADE:
        op.execute(statement)


def downgrade() -> None:
    """An earlier version reads a forum by its own cursor, which says up to where every topic was read."""
    op.execute("DELETE FROM scan_cursors WHERE topic_id > 0 OR account_id IS NOT NULL")
    op.execute("DROP INDEX package_parts_document")
    op.execute("ALTER TABLE memberships DROP COLUMN visible_from")
