"""Files of one archive find each other, and their set waits until its bytes prove it complete.

Revision ID: 0006
Revises: 0005
"""

from alembic import op

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None

UPGRADE = (
    # Files that may belong together share their family. It is read from the name: empty where that is no
    # archive's, not set where an earlier version did not look yet.
    "ALTER TABLE source_files ADD COLUMN family text",
    "ALTER TABLE source_files ADD COLUMN is_gone boolean NOT NULL DEFAULT false",
    """
    CREATE INDEX source_files_loose ON source_files (channel_id, family, message_id)
    WHERE set_id IS NULL AND family <> ''
    """,
    """
    CREATE INDEX source_files_unsorted ON source_files (channel_id, id)
    WHERE set_id IS NULL AND family IS NULL
    """,
    "ALTER TABLE archive_sets ADD COLUMN family text",
    "ALTER TABLE archive_sets ADD COLUMN to_prove boolean NOT NULL DEFAULT false",
    """
    ALTER TABLE archive_sets ADD CONSTRAINT archive_sets_proof_check
    CHECK (NOT to_prove OR state IN ('collecting', 'skipped'))
    """,
    """
    CREATE INDEX archive_sets_open ON archive_sets (channel_id, family)
    WHERE state IN ('collecting', 'skipped')
    """,
    """
    CREATE INDEX archive_sets_to_prove ON archive_sets (channel_id, not_before)
    WHERE state = 'collecting' AND to_prove
    """,
)
DOWNGRADE = (
    # An earlier version publishes single files as they are, and never finishes a collecting set: single files
    # become ready, the others go back to waiting by themselves.
    """
    UPDATE archive_sets s SET state = 'ready', reason = NULL, to_prove = false FROM source_files f
    WHERE s.state = 'collecting' AND s.part_count = 1 AND f.set_id = s.id AND f.file_name = s.name
    """,
    """
    UPDATE source_files SET set_id = NULL, part_number = NULL
    WHERE set_id IN (SELECT id FROM archive_sets WHERE state = 'collecting')
    """,
    """
    UPDATE archive_sets SET state = 'skipped', to_prove = false
    WHERE state = 'collecting' AND id IN (SELECT set_id FROM uploads)
    """,
    "DELETE FROM archive_sets WHERE state = 'collecting'",
    "DROP INDEX archive_sets_to_prove",
    "DROP INDEX archive_sets_open",
    "ALTER TABLE archive_sets DROP COLUMN to_prove",
    "ALTER TABLE archive_sets DROP COLUMN family",
    "DROP INDEX source_files_unsorted",
    "DROP INDEX source_files_loose",
    "ALTER TABLE source_files DROP COLUMN is_gone",
    "ALTER TABLE source_files DROP COLUMN family",
)


def upgrade() -> None:
    for statement in UPGRADE:
        op.execute(statement)


def downgrade() -> None:
    """Sets that were not complete are forgotten; their files stay, and form them again after an upgrade."""
    for statement in DOWNGRADE:
        op.execute(statement)
