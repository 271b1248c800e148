"""What is not there: how long an account has been in a channel, and packages missed at their destination.

Revision ID: 0013
Revises: 0012
"""

from alembic import op

revision = "0013"
down_revision = "0012"
branch_labels = None
depends_on = None


def upgrade() -> None:
    # NULL: how much the account sees is asked before anything is concluded from what it does not find.
    op.execute("ALTER TABLE memberships ADD COLUMN member_since bigint")
    op.execute("ALTER TABLE scan_cursors ADD COLUMN unreadable text")
    op.execute("ALTER TABLE channels ADD COLUMN missing_since timestamptz, ADD COLUMN full_at integer")
    op.execute("ALTER TABLE packages ADD COLUMN has_remains boolean NOT NULL DEFAULT false")
    op.execute("CREATE INDEX packages_remains ON packages (id) WHERE has_remains")
    op.execute("CREATE INDEX uploads_package ON uploads (package_id) WHERE package_id IS NOT NULL")
    op.execute("""
        CREATE TABLE missing_packages (
            package_id bigint PRIMARY KEY REFERENCES packages (id) ON DELETE CASCADE,
            channel_id integer NOT NULL REFERENCES channels (id) ON DELETE CASCADE,
            message_id integer NOT NULL,
            is_gone boolean NOT NULL DEFAULT false,
            noticed_at timestamptz NOT NULL DEFAULT fleet_now()
        )
    """)
    op.execute("CREATE INDEX missing_packages_channel ON missing_packages (channel_id, package_id)")


def downgrade() -> None:
    op.execute("DROP TABLE missing_packages")
    op.execute("DROP INDEX uploads_package")
    op.execute("ALTER TABLE packages DROP COLUMN has_remains")
    op.execute("ALTER TABLE channels DROP COLUMN missing_since, DROP COLUMN full_at")
    op.execute("ALTER TABLE scan_cursors DROP COLUMN unreadable")
    op.execute("ALTER TABLE memberships DROP COLUMN member_since")
