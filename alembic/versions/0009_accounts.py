"""What accounts keep encrypted besides their sessions, which workers share accounts, and accounts that go.

Revision ID: 0009
Revises: 0008
"""

from alembic import op

revision = "0009"
down_revision = "0008"
branch_labels = None
depends_on = None

UPGRADE = (
    "ALTER TABLE workers ADD shares_accounts boolean NOT NULL DEFAULT false",
    # A login that waits for its code or password, and the proxy with its password.
    """
    CREATE TABLE account_secrets (
        account_id  integer REFERENCES accounts ON DELETE CASCADE,
        name        text CHECK (name IN ('login', 'proxy')),
        key_id      text NOT NULL,
        sealed      bytea NOT NULL,
        updated_at  timestamptz NOT NULL DEFAULT fleet_now(),
        PRIMARY KEY (account_id, name)
    )
    """,
    # What was published stays when its account goes; an upload under way holds its account.
    "ALTER TABLE uploads ALTER account_id DROP NOT NULL",
    "ALTER TABLE uploads DROP CONSTRAINT uploads_account_id_fkey",
    """
    ALTER TABLE uploads ADD CONSTRAINT uploads_account_id_fkey
        FOREIGN KEY (account_id) REFERENCES accounts ON DELETE SET NULL
    """,
    """
    ALTER TABLE uploads ADD CONSTRAINT uploads_account_check
        CHECK (state <> 'open' OR account_id IS NOT NULL)
    """,
)

DOWNGRADE = (
    "ALTER TABLE uploads DROP CONSTRAINT uploads_account_check",
    "ALTER TABLE uploads DROP CONSTRAINT uploads_account_id_fkey",
    # The version before has no place for uploads of removed accounts; what they published stays published.
    """
    DELETE FROM upload_parts WHERE upload_id IN (SELECT id FROM uploads WHERE account_id IS NULL)
    """,
    "DELETE FROM uploads WHERE account_id IS NULL",
    "ALTER TABLE uploads ALTER account_id SET NOT NULL",
    """
    ALTER TABLE uploads ADD CONSTRAINT uploads_account_id_fkey
        FOREIGN KEY (account_id) REFERENCES accounts ON DELETE RESTRICT
    """,
    "DROP TABLE account_secrets",
    "ALTER TABLE workers DROP shares_accounts",
)


def upgrade() -> None:
    for statement in UPGRADE:
        op.execute(statement)


def downgrade() -> None:
    """Half-finished logins have to be begun again."""
    for statement in DOWNGRADE:
        op.execute(statement)
