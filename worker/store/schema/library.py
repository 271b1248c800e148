"""What packages are known by, and what commands ask of running workers."""

from sqlalchemy import (
    BigInteger,
    CheckConstraint,
    Column,
    Index,
    Integer,
    PrimaryKeyConstraint,
    Table,
    Text,
    text,
)
from sqlalchemy.dialects.postgresql import BYTEA, JSONB, UUID

from worker.store.schema.base import (
    Time,
    checked,
    identity,
    metadata,
    now_column,
    reference,
    required,
    state_column,
)

package_originals = Table(
    "package_originals",
    metadata,
    reference("package_id", "packages", on_delete="CASCADE", kind=BigInteger),
    checked("ordinal", Integer, ">= 0", nullable=False),
    required("file_name", Text),
    checked("size", BigInteger, ">= 0", nullable=False),
    required("source_channel", BigInteger),
    required("source_message", Integer),
    required("document_id", BigInteger),
    PrimaryKeyConstraint("package_id", "ordinal"),
    Index("package_originals_document", "document_id"),
)

source_photos = Table(
    "source_photos",
    metadata,
    reference("channel_id", "channels", on_delete="CASCADE"),
    required("message_id", Integer),
    required("topic_id", Integer, default="0"),
    Column("poster_id", BigInteger),
    Column("album_id", BigInteger),
    Column("reply_to", Integer),
    required("caption", Text, default="''"),
    required("posted_at", Time),
    PrimaryKeyConstraint("channel_id", "message_id"),
    Index("source_photos_replies", "channel_id", "reply_to", postgresql_where=text("reply_to IS NOT NULL")),
)

messages_set_aside = Table(
    "messages_set_aside",
    metadata,
    reference("channel_id", "channels", on_delete="CASCADE"),
    required("message_id", Integer),
    required("reason", Text),
    now_column("at"),
    PrimaryKeyConstraint("channel_id", "message_id"),
)

previews = Table(
    "previews",
    metadata,
    reference("package_id", "packages", on_delete="CASCADE", kind=BigInteger, primary_key=True),
    state_column("posted", "inside", name="kind"),
    required("origin", Text),
    required("jpeg", BYTEA),
    now_column("made_at"),
)

requests = Table(
    "requests",
    metadata,
    identity(),
    required("kind", Text),
    reference("account_id", "accounts", on_delete="CASCADE"),
    required("arguments", JSONB, default="'{}'"),
    Column("secret", BYTEA),
    state_column("queued", "running", "done", "failed", "cancelled", default="queued"),
    required("done", BigInteger, default="0"),
    required("total", BigInteger, default="0"),
    required("step", Text, default="''"),
    Column("result", JSONB),
    Column("reason", Text),
    required("asked_by", Text, default="''"),
    reference("worker_id", "workers", on_delete="SET NULL", kind=UUID, nullable=True),
    now_column("created_at"),
    now_column("awaited_at"),
    Column("worked_at", Time),
    Column("ended_at", Time),
    CheckConstraint("(state IN ('done', 'failed', 'cancelled')) = (ended_at IS NOT NULL)", name="end"),
    CheckConstraint("secret IS NULL OR state = 'queued'", name="secret"),
    Index("requests_live", "account_id", "id", postgresql_where=text("state IN ('queued', 'running')")),
)

request_chunks = Table(
    "request_chunks",
    metadata,
    reference("request_id", "requests", on_delete="CASCADE", kind=BigInteger),
    required("ordinal", BigInteger),
    required("data", BYTEA),
    PrimaryKeyConstraint("request_id", "ordinal"),
    prefixes=["UNLOGGED"],
)
