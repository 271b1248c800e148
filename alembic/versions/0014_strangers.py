"""What others post is bounded: names in indexes, messages that cannot be kept, work that ends a process.

Revision ID: 0014
Revises: 0012
"""

from alembic import op

revision = "0014"
down_revision = "0012"
branch_labels = None
depends_on = None

# As worker.domain.forming makes the key of a long name: an index has no room for more than 2,704 bytes.
_BOUND_FAMILY = """
    UPDATE {table} SET family = left(family, 64) || ' ' || encode(sha256(convert_to(family, 'UTF8')), 'hex')
    WHERE length(family) > 256
"""

UPGRADE = (
    """
    CREATE TABLE messages_set_aside (
        channel_id  integer NOT NULL REFERENCES channels ON DELETE CASCADE,
        message_id  integer NOT NULL,
        reason      text NOT NULL,
        at          timestamptz NOT NULL DEFAULT fleet_now(),
        PRIMARY KEY (channel_id, message_id)
    )
    """,
    # A part that was posted again takes the place of one with which its set was not whole.
    "ALTER TABLE source_files ADD COLUMN superseded_by integer",
    "ALTER TABLE archive_sets ADD COLUMN found_wanting boolean NOT NULL DEFAULT false",
    "ALTER TABLE archive_sets ADD COLUMN newest_tried integer NOT NULL DEFAULT 0",
    """
    UPDATE archive_sets SET found_wanting = true
    WHERE (state = 'collecting' AND NOT to_prove OR state = 'failed') AND reason LIKE 'it is not whole%'
    """,
    # Tries that were begun and never ended, as when they end the process: each is counted before its work.
    "ALTER TABLE archive_sets ADD COLUMN unended integer NOT NULL DEFAULT 0",
    # Nothing in some sets can prove them whole: so long they wait, and then they are published with a mark.
    "ALTER TABLE archive_sets ADD COLUMN undecided_since timestamptz",
    "ALTER TABLE archive_sets ADD COLUMN is_unproven boolean NOT NULL DEFAULT false",
    # What changed in a gap is found by reading again, from the beginning up to where reading had come.
    "ALTER TABLE scan_cursors ADD COLUMN reread_at integer NOT NULL DEFAULT 0",
    "ALTER TABLE scan_cursors ADD COLUMN reread_to integer NOT NULL DEFAULT 0",
    _BOUND_FAMILY.format(table="source_files"),
    _BOUND_FAMILY.format(table="archive_sets"),
)


def upgrade() -> None:
    for statement in UPGRADE:
        op.execute(statement)


def downgrade() -> None:
    """A long name's earlier key is not known any more: a late part of it makes a set of its own."""
    op.execute("ALTER TABLE scan_cursors DROP COLUMN reread_to")
    op.execute("ALTER TABLE scan_cursors DROP COLUMN reread_at")
    op.execute("ALTER TABLE archive_sets DROP COLUMN is_unproven")
    op.execute("ALTER TABLE archive_sets DROP COLUMN undecided_since")
    op.execute("ALTER TABLE archive_sets DROP COLUMN unended")
    op.execute("ALTER TABLE archive_sets DROP COLUMN newest_tried")
    op.execute("ALTER TABLE archive_sets DROP COLUMN found_wanting")
    op.execute("ALTER TABLE source_files DROP COLUMN superseded_by")
    op.execute("DROP TABLE messages_set_aside")
