"""What people look things up by: original files, previews, posted photos; and requests to running workers."""

from __future__ import annotations

from alembic import op

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None

UPGRADE = (
    # The files as they were posted: volume boundaries for giving them back, document ids for knowing them.
    """
    CREATE TABLE package_originals (
        package_id      bigint NOT NULL REFERENCES packages ON DELETE CASCADE,
        ordinal         integer NOT NULL CHECK (ordinal >= 0),
        file_name       text NOT NULL,
        size            bigint NOT NULL CHECK (size >= 0),
        source_channel  bigint NOT NULL,
        source_message  integer NOT NULL,
        document_id     bigint NOT NULL,
        PRIMARY KEY (package_id, ordinal)
    )
    """,
    "CREATE INDEX package_originals_document ON package_originals (document_id)",
    """
    INSERT INTO package_originals
    SELECT s.package_id, f.part_number, f.file_name, f.size, c.telegram_id, f.message_id, f.document_id
    FROM uploads u JOIN archive_sets s ON s.id = u.set_id JOIN source_files f ON f.set_id = s.id
    JOIN channels c ON c.id = s.channel_id
    WHERE u.state = 'done' AND u.package_id = s.package_id
    ON CONFLICT DO NOTHING
    """,
    """
    CREATE TABLE source_photos (
        channel_id  integer NOT NULL REFERENCES channels ON DELETE CASCADE,
        message_id  integer NOT NULL,
        topic_id    integer NOT NULL DEFAULT 0,
        poster_id   bigint,
        album_id    bigint,
        reply_to    integer,
        caption     text NOT NULL DEFAULT '',
        posted_at   timestamptz NOT NULL,
        PRIMARY KEY (channel_id, message_id)
    )
    """,
    "CREATE INDEX source_photos_replies ON source_photos (channel_id, reply_to) WHERE reply_to IS NOT NULL",
    """
    CREATE TABLE previews (
        package_id  bigint PRIMARY KEY REFERENCES packages ON DELETE CASCADE,
        kind        text NOT NULL CHECK (kind IN ('posted', 'inside')),
        origin      text NOT NULL,
        jpeg        bytea NOT NULL,
        made_at     timestamptz NOT NULL DEFAULT fleet_now()
    )
    """,
    "ALTER TABLE packages ADD metadata_not_before timestamptz NOT NULL DEFAULT fleet_now()",
    "CREATE INDEX packages_tags ON packages USING gin (tags)",
    "CREATE INDEX packages_creator ON packages (lower(creator))",
    """
    CREATE TABLE requests (
        id          bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
        kind        text NOT NULL,
        account_id  integer NOT NULL REFERENCES accounts ON DELETE CASCADE,
        arguments   jsonb NOT NULL DEFAULT '{}',
        secret      bytea,
        state       text NOT NULL DEFAULT 'queued'
                    CHECK (state IN ('queued', 'running', 'done', 'failed', 'cancelled')),
        done        bigint NOT NULL DEFAULT 0,
        total       bigint NOT NULL DEFAULT 0,
        step        text NOT NULL DEFAULT '',
        result      jsonb,
        reason      text,
        asked_by    text NOT NULL DEFAULT '',
        worker_id   uuid REFERENCES workers ON DELETE SET NULL,
        created_at  timestamptz NOT NULL DEFAULT fleet_now(),
        awaited_at  timestamptz NOT NULL DEFAULT fleet_now(),
        worked_at   timestamptz,
        ended_at    timestamptz,
        CONSTRAINT requests_end_check
            CHECK ((state IN ('done', 'failed', 'cancelled')) = (ended_at IS NOT NULL)),
        CONSTRAINT requests_secret_check CHECK (secret IS NULL OR state = 'queued')
    )
    """,
    """
    CREATE INDEX requests_live ON requests (account_id, id) WHERE state IN ('queued', 'running')
    """,
    # A pipe from the worker that executes a request to the command that waits for it. Its rows live for
    # moments, and nobody misses them after a crash.
    """
    CREATE UNLOGGED TABLE request_chunks (
        request_id  bigint NOT NULL REFERENCES requests ON DELETE CASCADE,
        ordinal     bigint NOT NULL,
        data        bytea NOT NULL,
        PRIMARY KEY (request_id, ordinal)
    )
    """,
    # The bytes of files do not shrink; trying costs more than it saves.
    "ALTER TABLE request_chunks ALTER data SET STORAGE EXTERNAL",
)


def upgrade() -> None:
    for statement in UPGRADE:
        op.execute(statement)


def downgrade() -> None:
    """Forget previews, photos and requests. Original files are known to the sets that were published."""
    for table in ("request_chunks", "requests", "previews", "source_photos", "package_originals"):
        op.execute(f"DROP TABLE {table}")
    op.execute("DROP INDEX packages_tags")
    op.execute("DROP INDEX packages_creator")
    op.execute("ALTER TABLE packages DROP metadata_not_before")
