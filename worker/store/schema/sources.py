"""Where archives come from: channels, who reads them, how far, what was seen, and the sets it makes."""

from sqlalchemy import (
    BigInteger,
    CheckConstraint,
    Column,
    Index,
    Integer,
    PrimaryKeyConstraint,
    Table,
    Text,
    UniqueConstraint,
    text,
)
from sqlalchemy.dialects.postgresql import UUID

from worker.store.schema.base import (
    Time,
    checked,
    flag,
    hash_column,
    identity,
    metadata,
    now_column,
    reference,
    required,
    state_column,
)

channels = Table(
    "channels",
    metadata,
    identity(Integer),
    Column("telegram_id", BigInteger, nullable=False, unique=True),
    required("title", Text),
    Column("username", Text),
    state_column("channel", "supergroup", "forum", name="kind"),
    flag("is_source"),
    flag("is_destination"),
    flag("is_enabled", default=True),
    flag("is_protected"),
    flag("allow_protected"),
    flag("copy_mode"),
    Column("category", Text),
    now_column("created_at"),
    Column("missing_since", Time),
    Column("full_at", Integer),
    CheckConstraint("NOT (is_source AND is_destination)", name="role"),
    Index("channels_one_destination", "is_destination", unique=True, postgresql_where=text("is_destination")),
)

memberships = Table(
    "memberships",
    metadata,
    reference("account_id", "accounts", on_delete="CASCADE"),
    reference("channel_id", "channels", on_delete="CASCADE"),
    flag("can_read", default=True),
    flag("can_post"),
    Column("visible_from", Integer),
    Column("member_since", BigInteger),
    now_column("checked_at"),
    PrimaryKeyConstraint("account_id", "channel_id"),
    Index("memberships_channel", "channel_id"),
)

scan_cursors = Table(
    "scan_cursors",
    metadata,
    identity(),
    reference("channel_id", "channels", on_delete="CASCADE"),
    required("topic_id", Integer, default="0"),
    Column("topic_title", Text),
    reference("account_id", "accounts", on_delete="CASCADE", nullable=True),
    required("last_message_id", Integer, default="0"),
    required("newest_message_id", Integer, default="0"),
    required("pts", Integer, default="0"),
    required("messages_seen", BigInteger, default="0"),
    Column("scanned_at", Time),
    reference("held_by", "accounts", on_delete="SET NULL", nullable=True),
    Column("held_until", Time),
    Column("unreadable", Text),
    CheckConstraint("last_message_id >= 0", name="position"),
    UniqueConstraint(
        "channel_id",
        "topic_id",
        "account_id",
        name="scan_cursors_source_key",
        postgresql_nulls_not_distinct=True,
    ),
)

archive_sets = Table(
    "archive_sets",
    metadata,
    identity(),
    reference("channel_id", "channels", on_delete="RESTRICT"),
    required("topic_id", Integer, default="0"),
    required("name", Text),
    required("format", Text),
    state_column("collecting", "ready", "claimed", "published", "indexed", "duplicate", "failed", "skipped"),
    Column("reason", Text),
    Column("family", Text),
    flag("to_prove"),
    checked("part_count", Integer, "> 0", nullable=False),
    checked("total_size", BigInteger, ">= 0", nullable=False),
    required("lead_document_id", BigInteger),
    hash_column("content_hash", nullable=True),
    reference("package_id", "packages", on_delete="RESTRICT", kind=BigInteger, nullable=True),
    reference("claimed_by", "accounts", on_delete="RESTRICT", nullable=True),
    reference("claim_worker_id", "workers", on_delete="RESTRICT", kind=UUID, nullable=True),
    required("fence", BigInteger, default="0"),
    Column("claimed_at", Time),
    required("attempts", Integer, default="0"),
    required("waits", Integer, default="0"),
    now_column("not_before"),
    required("posted_at", Time),
    now_column("created_at"),
    now_column("updated_at"),
    CheckConstraint(
        "(state = 'claimed') = (claimed_by IS NOT NULL)"
        " AND (state = 'claimed') = (claim_worker_id IS NOT NULL)"
        " AND (state = 'claimed') = (claimed_at IS NOT NULL)",
        name="claim",
    ),
    CheckConstraint(
        "(state IN ('published', 'indexed', 'duplicate')) = (package_id IS NOT NULL)", name="package"
    ),
    CheckConstraint("state NOT IN ('failed', 'skipped') OR reason IS NOT NULL", name="reason"),
    CheckConstraint("NOT to_prove OR state IN ('collecting', 'skipped')", name="proof"),
    Index(
        "archive_sets_one_live_claim",
        "lead_document_id",
        unique=True,
        postgresql_where=text("state = 'claimed'"),
    ),
    Index(
        "archive_sets_claimable", "channel_id", "not_before", "id", postgresql_where=text("state = 'ready'")
    ),
    Index("archive_sets_state", "state", "channel_id"),
    Index("archive_sets_claims", "claim_worker_id", postgresql_where=text("state = 'claimed'")),
    Index(
        "archive_sets_held_back",
        *("state", "not_before"),
        postgresql_where=text("reason IS NOT NULL AND state IN ('collecting', 'ready', 'failed')"),
    ),
    Index("archive_sets_content", "content_hash", postgresql_where=text("content_hash IS NOT NULL")),
    Index(
        "archive_sets_open",
        *("channel_id", "family"),
        postgresql_where=text("state IN ('collecting', 'skipped')"),
    ),
    Index(
        "archive_sets_to_prove",
        *("channel_id", "not_before"),
        postgresql_where=text("state = 'collecting' AND to_prove"),
    ),
    Index("archive_sets_package", "package_id", postgresql_where=text("package_id IS NOT NULL")),
    Index(
        "archive_sets_name_search", "name", postgresql_using="gin", postgresql_ops={"name": "gin_trgm_ops"}
    ),
)

source_files = Table(
    "source_files",
    metadata,
    identity(),
    reference("channel_id", "channels", on_delete="RESTRICT"),
    required("topic_id", Integer, default="0"),
    required("message_id", Integer),
    required("document_id", BigInteger),
    required("file_name", Text),
    checked("size", BigInteger, ">= 0", nullable=False),
    Column("mime_type", Text),
    required("caption", Text, default="''"),
    Column("poster_id", BigInteger),
    Column("album_id", BigInteger),
    Column("reply_to", Integer),
    flag("is_protected"),
    required("posted_at", Time),
    reference("set_id", "archive_sets", on_delete="RESTRICT", kind=BigInteger, nullable=True),
    Column("part_number", Integer),
    hash_column("sha256", nullable=True),
    Column("family", Text),
    flag("is_gone"),
    UniqueConstraint("channel_id", "message_id", name="source_files_message_key"),
    CheckConstraint("(set_id IS NULL) = (part_number IS NULL)", name="part"),
    UniqueConstraint("set_id", "part_number", name="source_files_order_key"),
    Index("source_files_document", "document_id"),
    Index(
        "source_files_loose",
        *("channel_id", "family", "message_id"),
        postgresql_where=text("set_id IS NULL AND family <> ''"),
    ),
    Index(
        "source_files_unsorted",
        *("channel_id", "id"),
        postgresql_where=text("set_id IS NULL AND family IS NULL"),
    ),
)
