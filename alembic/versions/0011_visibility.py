"""One column says how much of a channel an account sees, and NULL means that nobody has asked.

Revision ID: 0011
Revises: 0010
"""

from alembic import op

revision = "0011"
down_revision = "0010"
branch_labels = None
depends_on = None


def upgrade() -> None:
    # A broadcast channel shows its whole history to whoever is in it.
    op.execute("""
        UPDATE memberships SET visible_from = 0 FROM channels c
        WHERE c.id = channel_id AND c.kind = 'channel' AND visible_from IS NULL
    """)
    op.execute("ALTER TABLE memberships DROP COLUMN sees_history")


def downgrade() -> None:
    op.execute("ALTER TABLE memberships ADD COLUMN sees_history boolean NOT NULL DEFAULT true")
    op.execute("UPDATE memberships SET sees_history = visible_from IS NOT DISTINCT FROM 0")
