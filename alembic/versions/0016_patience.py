"""An account's row says for how long its owner may be silent and still be connected.

Revision ID: 0016
Revises: 0013
"""

from alembic import op

revision = "0016"
down_revision = "0013"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.execute("ALTER TABLE accounts ADD COLUMN lease_seconds double precision")


def downgrade() -> None:
    op.execute("ALTER TABLE accounts DROP COLUMN lease_seconds")
