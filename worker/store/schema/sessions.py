"""How accounts are logged in, and what they can address."""

from sqlalchemy import BigInteger, Index, Integer, PrimaryKeyConstraint, Table, Text, text
from sqlalchemy.dialects.postgresql import BYTEA

from worker.store.schema.base import flag, metadata, now_column, reference, required, state_column

account_keys = Table(
    "account_keys",
    metadata,
    reference("account_id", "accounts", on_delete="CASCADE"),
    required("dc_id", Integer),
    flag("is_main"),
    required("key_id", Text),
    required("sealed_key", BYTEA),
    now_column("updated_at"),
    PrimaryKeyConstraint("account_id", "dc_id"),
    Index("account_keys_one_main", "account_id", unique=True, postgresql_where=text("is_main")),
)

account_secrets = Table(
    "account_secrets",
    metadata,
    reference("account_id", "accounts", on_delete="CASCADE"),
    state_column("login", "proxy", name="name"),
    required("key_id", Text),
    required("sealed", BYTEA),
    now_column("updated_at"),
    PrimaryKeyConstraint("account_id", "name"),
)

peers = Table(
    "peers",
    metadata,
    reference("account_id", "accounts", on_delete="CASCADE"),
    required("telegram_id", BigInteger),
    required("access_hash", BigInteger),
    now_column("updated_at"),
    PrimaryKeyConstraint("account_id", "telegram_id"),
)
