"""Accounts, channels, what was seen in them, and what was published.

Revision ID: 0001
Revises:
"""

from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

UPGRADE = (
    "CREATE EXTENSION IF NOT EXISTS pg_trgm",
    # Every time that two processes must agree on comes from here; tests replace it to let time pass.
    """
    CREATE FUNCTION fleet_now() RETURNS timestamptz LANGUAGE sql STABLE PARALLEL SAFE
    AS 'SELECT clock_timestamp()'
    """,
    """
    CREATE TABLE settings (
        key         text PRIMARY KEY,
        value       jsonb NOT NULL,
        updated_at  timestamptz NOT NULL DEFAULT fleet_now()
    )
    """,
    """
    CREATE TABLE workers (
        id            uuid PRIMARY KEY,
        host          text NOT NULL,
        pid           integer NOT NULL,
        version       text NOT NULL,
        address       text,
        memory_bytes  bigint NOT NULL DEFAULT 0,
        started_at    timestamptz NOT NULL DEFAULT fleet_now(),
        heartbeat_at  timestamptz NOT NULL DEFAULT fleet_now(),
        stopped_at    timestamptz
    )
    """,
    "CREATE INDEX workers_live ON workers (heartbeat_at) WHERE stopped_at IS NULL",
    """
    CREATE TABLE accounts (
        id                integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
        phone             text NOT NULL UNIQUE,
        telegram_user_id  bigint UNIQUE,
        display_name      text NOT NULL DEFAULT '',
        username          text,
        is_premium        boolean NOT NULL DEFAULT false,
        state             text NOT NULL DEFAULT 'new' CHECK (state IN
                          ('new', 'awaiting_code', 'awaiting_password', 'ready', 'needs_login', 'disabled',
                           'banned')),
        state_reason      text,
        worker_id         uuid REFERENCES workers ON DELETE SET NULL,
        lease_epoch       bigint NOT NULL DEFAULT 0,
        lease_until       timestamptz,
        created_at        timestamptz NOT NULL DEFAULT fleet_now(),
        updated_at        timestamptz NOT NULL DEFAULT fleet_now()
    )
    """,
    """
    CREATE TABLE channels (
        id               integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
        telegram_id      bigint NOT NULL UNIQUE,
        title            text NOT NULL,
        username         text,
        kind             text NOT NULL CHECK (kind IN
                         ('channel', 'supergroup', 'forum')),
        is_source        boolean NOT NULL DEFAULT false,
        is_destination   boolean NOT NULL DEFAULT false,
        is_enabled       boolean NOT NULL DEFAULT true,
        is_protected     boolean NOT NULL DEFAULT false,
        allow_protected  boolean NOT NULL DEFAULT false,
        copy_mode        boolean NOT NULL DEFAULT false,
        category         text,
        created_at       timestamptz NOT NULL DEFAULT fleet_now(),
        CONSTRAINT channels_role_check CHECK (NOT (is_source AND is_destination))
    )
    """,
    # New archives go to one destination; earlier destinations keep what they hold.
    "CREATE UNIQUE INDEX channels_one_destination ON channels (is_destination) WHERE is_destination",
    """
    CREATE TABLE memberships (
        account_id       integer REFERENCES accounts ON DELETE CASCADE,
        channel_id       integer REFERENCES channels ON DELETE CASCADE,
        can_read         boolean NOT NULL DEFAULT true,
        can_post         boolean NOT NULL DEFAULT false,
        sees_history     boolean NOT NULL DEFAULT true,
        checked_at       timestamptz NOT NULL DEFAULT fleet_now(),
        PRIMARY KEY (account_id, channel_id)
    )
    """,
    "CREATE INDEX memberships_channel ON memberships (channel_id)",
    """
    CREATE TABLE scan_cursors (
        id                 bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
        channel_id         integer NOT NULL REFERENCES channels
                           ON DELETE CASCADE,
        topic_id           integer NOT NULL DEFAULT 0,
        topic_title        text,
        account_id         integer REFERENCES accounts ON DELETE CASCADE,
        last_message_id    integer NOT NULL DEFAULT 0,
        newest_message_id  integer NOT NULL DEFAULT 0,
        pts                integer NOT NULL DEFAULT 0,
        messages_seen      bigint NOT NULL DEFAULT 0,
        scanned_at         timestamptz,
        held_by            integer REFERENCES accounts ON DELETE SET NULL,
        held_until         timestamptz,
        CONSTRAINT scan_cursors_position_check CHECK (last_message_id >= 0),
        CONSTRAINT scan_cursors_source_key UNIQUE NULLS NOT DISTINCT (channel_id, topic_id, account_id)
    )
    """,
    """
    CREATE TABLE runs (
        id           bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
        worker_id    uuid REFERENCES workers ON DELETE SET NULL,
        account_id   integer REFERENCES accounts ON DELETE CASCADE,
        started_at   timestamptz NOT NULL DEFAULT fleet_now(),
        ended_at     timestamptz,
        outcome      text CHECK (outcome IN
                     ('finished', 'stopped', 'failed', 'crashed')),
        reason       text,
        CONSTRAINT runs_end_check CHECK ((ended_at IS NULL) = (outcome IS NULL))
    )
    """,
    "CREATE INDEX runs_open ON runs (worker_id) WHERE ended_at IS NULL",
    """
    CREATE TABLE packages (
        id                 bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
        content_hash       bytea NOT NULL UNIQUE
                           CHECK (octet_length(content_hash) = 32),
        file_name          text NOT NULL,
        file_size          bigint NOT NULL CHECK (file_size > 0),
        archive_type       text NOT NULL,
        source_channel_id  integer REFERENCES channels
                           ON DELETE SET NULL,
        source_message_id  integer,
        dest_channel_id    integer NOT NULL REFERENCES channels
                           ON DELETE RESTRICT,
        dest_message_id    integer NOT NULL,
        is_multipart       boolean NOT NULL DEFAULT false,
        part_count         integer NOT NULL CHECK (part_count > 0),
        file_count         integer NOT NULL DEFAULT 0 CHECK (file_count >= 0),
        state              text NOT NULL DEFAULT 'published' CHECK (state IN
                           ('published', 'withdrawn')),
        metadata           text NOT NULL DEFAULT 'pending' CHECK (metadata IN
                           ('pending', 'complete', 'failed')),
        metadata_reason    text,
        metadata_attempts  integer NOT NULL DEFAULT 0,
        marks              text[] NOT NULL DEFAULT '{}',
        creator            text,
        tags               text[] NOT NULL DEFAULT '{}',
        ingestion_run_id   bigint REFERENCES runs ON DELETE SET NULL,
        published_at       timestamptz NOT NULL DEFAULT fleet_now(),
        indexed_at         timestamptz,
        withdrawn_at       timestamptz,
        CONSTRAINT packages_failure_check CHECK (metadata <> 'failed' OR metadata_reason IS NOT NULL),
        CONSTRAINT packages_withdrawal_check CHECK ((state = 'withdrawn') = (withdrawn_at IS NOT NULL))
    )
    """,
    "CREATE INDEX packages_name_search ON packages USING gin (file_name gin_trgm_ops)",
    "CREATE INDEX packages_pending ON packages (id) WHERE metadata = 'pending' AND state = 'published'",
    "CREATE INDEX packages_destination ON packages (dest_channel_id, dest_message_id)",
    """
    CREATE TABLE package_parts (
        package_id       bigint REFERENCES packages ON DELETE RESTRICT,
        ordinal          integer CHECK (ordinal >= 0),
        dest_channel_id  integer NOT NULL REFERENCES channels
                         ON DELETE RESTRICT,
        message_id       integer NOT NULL,
        document_id      bigint,
        file_name        text NOT NULL,
        byte_offset      bigint NOT NULL CHECK (byte_offset >= 0),
        byte_length      bigint NOT NULL CHECK (byte_length > 0),
        PRIMARY KEY (package_id, ordinal),
        CONSTRAINT package_parts_message_key UNIQUE (dest_channel_id, message_id)
    )
    """,
    """
    CREATE TABLE package_files (
        package_id       bigint REFERENCES packages ON DELETE CASCADE,
        ordinal          integer,
        path             text NOT NULL,
        size             bigint,
        compressed_size  bigint,
        crc32            bigint,
        modified_at      timestamp,
        is_dir           boolean NOT NULL DEFAULT false,
        is_encrypted     boolean NOT NULL DEFAULT false,
        PRIMARY KEY (package_id, ordinal)
    )
    """,
    "CREATE INDEX package_files_path_search ON package_files USING gin (path gin_trgm_ops)",
    """
    CREATE TABLE archive_sets (
        id                bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
        channel_id        integer NOT NULL REFERENCES channels
                          ON DELETE RESTRICT,
        topic_id          integer NOT NULL DEFAULT 0,
        name              text NOT NULL,
        format            text NOT NULL,
        state             text NOT NULL CHECK (state IN
                          ('collecting', 'ready', 'claimed', 'published', 'indexed', 'duplicate', 'failed',
                           'skipped')),
        reason            text,
        part_count        integer NOT NULL CHECK (part_count > 0),
        total_size        bigint NOT NULL CHECK (total_size >= 0),
        lead_document_id  bigint NOT NULL,
        content_hash      bytea CHECK (octet_length(content_hash) = 32),
        package_id        bigint REFERENCES packages ON DELETE RESTRICT,
        claimed_by        integer REFERENCES accounts ON DELETE RESTRICT,
        claim_worker_id   uuid REFERENCES workers ON DELETE RESTRICT,
        fence             bigint NOT NULL DEFAULT 0,
        claimed_at        timestamptz,
        attempts          integer NOT NULL DEFAULT 0,
        not_before        timestamptz NOT NULL DEFAULT fleet_now(),
        posted_at         timestamptz NOT NULL,
        created_at        timestamptz NOT NULL DEFAULT fleet_now(),
        updated_at        timestamptz NOT NULL DEFAULT fleet_now(),
        CONSTRAINT archive_sets_claim_check CHECK ((state = 'claimed') = (claimed_by IS NOT NULL)
            AND (state = 'claimed') = (claim_worker_id IS NOT NULL)
            AND (state = 'claimed') = (claimed_at IS NOT NULL)),
        CONSTRAINT archive_sets_package_check CHECK
            ((state IN ('published', 'indexed', 'duplicate')) = (package_id IS NOT NULL)),
        CONSTRAINT archive_sets_reason_check CHECK (state NOT IN ('failed', 'skipped') OR reason IS NOT NULL)
    )
    """,
    # The same document is the same content: fetching it twice at once would be work for nothing.
    """
    CREATE UNIQUE INDEX archive_sets_one_live_claim ON archive_sets (lead_document_id) WHERE state = 'claimed'
    """,
    "CREATE INDEX archive_sets_claimable ON archive_sets (channel_id, not_before, id) WHERE state = 'ready'",
    "CREATE INDEX archive_sets_state ON archive_sets (state, channel_id)",
    "CREATE INDEX archive_sets_claims ON archive_sets (claim_worker_id) WHERE state = 'claimed'",
    "CREATE INDEX archive_sets_package ON archive_sets (package_id) WHERE package_id IS NOT NULL",
    "CREATE INDEX archive_sets_name_search ON archive_sets USING gin (name gin_trgm_ops)",
    """
    CREATE TABLE source_files (
        id            bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
        channel_id    integer NOT NULL REFERENCES channels
                      ON DELETE RESTRICT,
        topic_id      integer NOT NULL DEFAULT 0,
        message_id    integer NOT NULL,
        document_id   bigint NOT NULL,
        file_name     text NOT NULL,
        size          bigint NOT NULL CHECK (size >= 0),
        mime_type     text,
        caption       text NOT NULL DEFAULT '',
        poster_id     bigint,
        album_id      bigint,
        reply_to      integer,
        is_protected  boolean NOT NULL DEFAULT false,
        posted_at     timestamptz NOT NULL,
        set_id        bigint REFERENCES archive_sets ON DELETE RESTRICT,
        part_number   integer,
        sha256        bytea CHECK (octet_length(sha256) = 32),
        CONSTRAINT source_files_message_key UNIQUE (channel_id, message_id),
        CONSTRAINT source_files_part_check CHECK ((set_id IS NULL) = (part_number IS NULL)),
        CONSTRAINT source_files_order_key UNIQUE (set_id, part_number)
    )
    """,
    "CREATE INDEX source_files_document ON source_files (document_id)",
    """
    CREATE TABLE uploads (
        id              bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
        content_hash    bytea NOT NULL CHECK (octet_length(content_hash) = 32),
        set_id          bigint NOT NULL REFERENCES archive_sets ON DELETE RESTRICT,
        account_id      integer NOT NULL REFERENCES accounts ON DELETE RESTRICT,
        destination_id  integer NOT NULL REFERENCES channels
                        ON DELETE RESTRICT,
        floor_id        integer NOT NULL CHECK (floor_id >= 0),
        total_size      bigint NOT NULL CHECK (total_size > 0),
        fence           bigint NOT NULL DEFAULT 1,
        state           text NOT NULL DEFAULT 'open' CHECK (state IN
                        ('open', 'done', 'abandoned')),
        reason          text,
        package_id      bigint REFERENCES packages ON DELETE RESTRICT,
        created_at      timestamptz NOT NULL DEFAULT fleet_now(),
        ended_at        timestamptz,
        CONSTRAINT uploads_end_check CHECK ((state = 'open') = (ended_at IS NULL)),
        CONSTRAINT uploads_package_check CHECK ((state = 'done') = (package_id IS NOT NULL)),
        CONSTRAINT uploads_reason_check CHECK (state <> 'abandoned' OR reason IS NOT NULL)
    )
    """,
    # The promise of a single message set per content rests on these two.
    "CREATE UNIQUE INDEX uploads_one_live_intent ON uploads (content_hash) WHERE state = 'open'",
    "CREATE UNIQUE INDEX uploads_one_live_set ON uploads (set_id) WHERE state = 'open'",
    "CREATE INDEX uploads_open_by_account ON uploads (account_id) WHERE state = 'open'",
    """
    CREATE TABLE upload_parts (
        upload_id    bigint REFERENCES uploads ON DELETE RESTRICT,
        ordinal      integer CHECK (ordinal >= 0),
        file_name    text NOT NULL,
        byte_offset  bigint NOT NULL CHECK (byte_offset >= 0),
        byte_length  bigint NOT NULL CHECK (byte_length > 0),
        random_id    bigint NOT NULL UNIQUE,
        caption      text NOT NULL,
        state        text NOT NULL DEFAULT 'planned' CHECK (state IN
                     ('planned', 'sending', 'sent')),
        message_id   integer,
        document_id  bigint,
        sent_at      timestamptz,
        PRIMARY KEY (upload_id, ordinal),
        CONSTRAINT upload_parts_sent_check CHECK ((state = 'sent') = (message_id IS NOT NULL)
            AND (state = 'sent') = (sent_at IS NOT NULL))
    )
    """,
)

TABLES = (
    *(
        "upload_parts",
        "uploads",
        "source_files",
        "archive_sets",
        "package_files",
        "package_parts",
        "packages",
    ),
    *("runs", "scan_cursors", "memberships", "channels", "accounts", "workers", "settings"),
)


def upgrade() -> None:
    for statement in UPGRADE:
        op.execute(statement)


def downgrade() -> None:
    """Remove every table. The trigram extension stays: others may use it."""
    for table in TABLES:
        op.execute(f"DROP TABLE {table}")
    op.execute("DROP FUNCTION fleet_now()")
