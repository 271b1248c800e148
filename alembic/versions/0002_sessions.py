"""Sessions of accounts, encrypted, and the channels each account can address.

Revision ID: 0002
Revises: 0001
"""

from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None

UPGRADE = (
    """
    CREATE TABLE account_keys (
        account_id  integer REFERENCES accounts ON DELETE CASCADE,
        dc_id       integer,
        is_main     boolean NOT NULL DEFAULT false,
        key_id      text NOT NULL,
        sealed_key  bytea NOT NULL,
        updated_at  timestamptz NOT NULL DEFAULT fleet_now(),
        PRIMARY KEY (account_id, dc_id)
    )
    """,
    "CREATE UNIQUE INDEX account_keys_one_main ON account_keys (account_id) WHERE is_main",
    # An access hash is worth something only to the account it was given to.
    """
    CREATE TABLE peers (
        account_id   integer REFERENCES accounts ON DELETE CASCADE,
        telegram_id  bigint,
        access_hash  bigint NOT NULL,
        updated_at   timestamptz NOT NULL DEFAULT fleet_now(),
        PRIMARY KEY (account_id, telegram_id)
    )
    """,
)


def upgrade() -> None:
    for statement in UPGRADE:
        op.execute(statement)


def downgrade() -> None:
    """Remove the sessions; every account has to log in again."""
    op.execute("DROP TABLE peers")
    op.execute("DROP TABLE account_keys")
