"""What accounts are doing right now, for people to read."""

from sqlalchemy import BigInteger, PrimaryKeyConstraint, Table, Text

from worker.store.schema.base import checked, metadata, now_column, reference, required

account_progress = Table(
    "account_progress",
    metadata,
    reference("account_id", "accounts", on_delete="CASCADE"),
    required("set_name", Text),
    required("step", Text),
    checked("done_bytes", BigInteger, ">= 0", nullable=False),
    checked("total_bytes", BigInteger, ">= 0", nullable=False),
    checked("started_bytes", BigInteger, ">= 0", nullable=False),
    now_column("started_at"),
    now_column("updated_at"),
    PrimaryKeyConstraint("account_id", "set_name"),
)
