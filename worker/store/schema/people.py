"""Who works: workers, accounts, runs; and the fleet's switches."""

from sqlalchemy import BigInteger, CheckConstraint, Column, Double, Index, Integer, Table, Text, text
from sqlalchemy.dialects.postgresql import JSONB, UUID

from worker.store.schema.base import (
    Time,
    flag,
    identity,
    metadata,
    now_column,
    reference,
    required,
    state_column,
)

settings = Table(
    "settings",
    metadata,
    Column("key", Text, primary_key=True),
    required("value", JSONB),
    now_column("updated_at"),
)

workers = Table(
    "workers",
    metadata,
    Column("id", UUID, primary_key=True),
    required("host", Text),
    required("pid", Integer),
    required("version", Text),
    Column("address", Text),
    required("memory_bytes", BigInteger, default="0"),
    flag("shares_accounts"),
    now_column("started_at"),
    now_column("heartbeat_at"),
    Column("stopped_at", Time),
    Index("workers_live", "heartbeat_at", postgresql_where=text("stopped_at IS NULL")),
)

accounts = Table(
    "accounts",
    metadata,
    identity(Integer),
    Column("phone", Text, nullable=False, unique=True),
    Column("telegram_user_id", BigInteger, unique=True),
    required("display_name", Text, default="''"),
    Column("username", Text),
    flag("is_premium"),
    state_column(
        *(
            "new",
            "awaiting_code",
            "awaiting_password",
            "ready",
            "needs_login",
            "disabled",
            "banned",
            "frozen",
        ),
        default="new",
    ),
    Column("state_reason", Text),
    reference("worker_id", "workers", on_delete="SET NULL", kind=UUID, nullable=True),
    required("lease_epoch", BigInteger, default="0"),
    Column("lease_until", Time),
    Column("lease_seconds", Double),
    now_column("created_at"),
    now_column("updated_at"),
)

runs = Table(
    "runs",
    metadata,
    identity(),
    reference("worker_id", "workers", on_delete="SET NULL", kind=UUID, nullable=True),
    reference("account_id", "accounts", on_delete="CASCADE", nullable=True),
    now_column("started_at"),
    Column("ended_at", Time),
    state_column("finished", "stopped", "failed", "crashed", name="outcome", nullable=True),
    Column("reason", Text),
    flag("is_errand"),
    CheckConstraint("(ended_at IS NULL) = (outcome IS NULL)", name="end"),
    Index("runs_open", "worker_id", postgresql_where=text("ended_at IS NULL")),
)
