"""Accounts that are frozen, errands apart from work, uploads given up, and pauses of a whole host.

Revision ID: 0015
Revises: 0013
"""

from alembic import op

revision = "0015"
down_revision = "0013"
branch_labels = None
depends_on = None

_STATES = "'new', 'awaiting_code', 'awaiting_password', 'ready', 'needs_login', 'disabled', 'banned'"

UPGRADE = (
    "ALTER TABLE accounts DROP CONSTRAINT accounts_state_check",
    f"ALTER TABLE accounts ADD CONSTRAINT accounts_state_check CHECK (state IN ({_STATES}, 'frozen'))",
    # What an upload that was given up may have left is asked before its content is published anew.
    "CREATE INDEX uploads_abandoned ON uploads (content_hash) WHERE state = 'abandoned'",
    # A command's visit with an account is no work brought to its end.
    "ALTER TABLE runs ADD COLUMN is_errand boolean NOT NULL DEFAULT false",
    # A disk was too small for the set: it is no longer left to whoever might do better with it.
    "ALTER TABLE archive_sets ADD COLUMN turned_away_at timestamptz",
    """
    CREATE TABLE host_pauses (
        host      text PRIMARY KEY,
        until     timestamptz NOT NULL,
        failures  integer NOT NULL DEFAULT 1 CHECK (failures > 0)
    )
    """,
)
DOWNGRADE = (
    "DROP TABLE host_pauses",
    "ALTER TABLE archive_sets DROP COLUMN turned_away_at",
    "ALTER TABLE runs DROP COLUMN is_errand",
    "DROP INDEX uploads_abandoned",
    # The nearest that an earlier version knows: it does not work until a person says so.
    "UPDATE accounts SET state = 'disabled' WHERE state = 'frozen'",
    "ALTER TABLE accounts DROP CONSTRAINT accounts_state_check",
    f"ALTER TABLE accounts ADD CONSTRAINT accounts_state_check CHECK (state IN ({_STATES}))",
)


def upgrade() -> None:
    for statement in UPGRADE:
        op.execute(statement)


def downgrade() -> None:
    for statement in DOWNGRADE:
        op.execute(statement)
