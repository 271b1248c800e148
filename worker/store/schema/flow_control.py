"""What calls to Telegram cost, were refused, and taught."""

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
from sqlalchemy.dialects.postgresql import DOUBLE_PRECISION

from worker.store.schema.base import Time, checked, flag, identity, metadata, now_column, reference, required

host_pauses = Table(
    "host_pauses",
    metadata,
    Column("host", Text, primary_key=True),
    required("until", Time),
    checked("failures", Integer, "> 0", nullable=False, server_default=text("1")),
)

rate_limits = Table(
    "rate_limits",
    metadata,
    reference("account_id", "accounts", on_delete="CASCADE"),
    required("method", Text),
    required("window_start", Time),
    required("call_count", BigInteger, default="0"),
    now_column("last_call_at"),
    PrimaryKeyConstraint("account_id", "method", "window_start"),
    Index("rate_limits_window", "window_start"),
)

call_paces = Table(
    "call_paces",
    metadata,
    reference("account_id", "accounts", on_delete="CASCADE"),
    required("method", Text),
    required("chat", BigInteger),
    now_column("tat"),
    now_column("last_at"),
    required("widened", DOUBLE_PRECISION, CheckConstraint("widened >= 1", name="widened"), default="1"),
    now_column("widened_at"),
    PrimaryKeyConstraint("account_id", "method", "chat"),
)

api_activity = Table(
    "api_activity",
    metadata,
    identity(),
    now_column("at"),
    reference("account_id", "accounts", on_delete="CASCADE"),
    required("method", Text),
    flag("success", default=True),
    Column("error_code", Text),
    Column("flood_wait_seconds", Integer),
    required("request_duration_ms", Integer, default="0"),
    Column("context", Text),
    required("calls", Integer, CheckConstraint("calls > 0", name="calls"), default="1"),
    Index("api_activity_at", "at"),
    Index(
        "api_activity_floods",
        *("account_id", "method", "at"),
        postgresql_where=text("flood_wait_seconds IS NOT NULL"),
    ),
)

flood_wait_state = Table(
    "flood_wait_state",
    metadata,
    reference("account_id", "accounts", on_delete="CASCADE"),
    required("method", Text),
    required("chat", BigInteger),
    required("blocked_until", Time),
    required("wait_seconds", Integer),
    now_column("created_at"),
    PrimaryKeyConstraint("account_id", "method", "chat"),
    Index("flood_wait_state_blocked", "blocked_until"),
)

escalations = Table(
    "escalations",
    metadata,
    identity(),
    now_column("at"),
    reference("account_id", "accounts", on_delete="CASCADE"),
    required("method", Text),
    required("floods", Integer),
    required("extra_seconds", Integer),
    Index("escalations_at", "at"),
)
