"""An owner's patience stands in its account's row, and a clock that steps back prolongs no wait for calls.

Revision ID: 0016
Revises: 0015
"""

import runpy
from pathlib import Path

from alembic import op

revision = "0016"
down_revision = "0015"
branch_labels = None
depends_on = None

ADMIT = """
    CREATE OR REPLACE FUNCTION governor_admit(
        for_account integer, for_method text, for_chat bigint, bucket text,
        pace_interval double precision, burst integer, chat_interval double precision, chat_burst integer,
        slow_from double precision, half_life double precision,
        OUT wait double precision, OUT reason text
    ) LANGUAGE plpgsql AS $$
    DECLARE
        chats bigint[] := CASE WHEN chat_interval IS NULL THEN ARRAY[0] ELSE ARRAY[0, for_chat] END;
        pace call_paces;
        paces call_paces[];
        present timestamptz;
        blocked_at timestamptz;
        every double precision;
        at_once integer;
        backlog double precision;
        gap double precision;
        factors double precision[] := '{}';
    BEGIN
        LOOP
            SELECT array_agg(locked ORDER BY locked.chat <> 0) INTO paces FROM (
                SELECT p.* FROM call_paces p
                WHERE p.account_id = for_account AND p.method = bucket AND p.chat = ANY (chats)
                ORDER BY p.chat <> 0 FOR UPDATE
            ) locked;
            EXIT WHEN cardinality(paces) = cardinality(chats);
            INSERT INTO call_paces (account_id, method, chat) SELECT for_account, bucket, unnest(chats)
            ON CONFLICT DO NOTHING;
        END LOOP;
        present := fleet_now();

        -- What was written later than now was written before the clock stepped back, and goes back with it.
        IF EXISTS (SELECT FROM unnest(paces) p WHERE p.last_at > present) THEN
            UPDATE call_paces p SET tat = p.tat - (p.last_at - present), last_at = present
            WHERE p.account_id = for_account AND p.method = bucket AND p.chat = ANY (chats)
              AND p.last_at > present;
            SELECT array_agg(p ORDER BY p.chat <> 0) INTO paces FROM call_paces p
            WHERE p.account_id = for_account AND p.method = bucket AND p.chat = ANY (chats);
        END IF;

        SELECT extract(epoch FROM f.blocked_until - present),
               CASE f.chat WHEN 0 THEN 'flood' ELSE 'slow mode' END, f.created_at
        INTO wait, reason, blocked_at FROM flood_wait_state f
        WHERE f.account_id = for_account AND f.method = for_method AND f.chat IN (0, for_chat)
          AND f.blocked_until > present
        ORDER BY f.chat <> 0 LIMIT 1;
        IF FOUND THEN
            IF blocked_at > present THEN
                UPDATE flood_wait_state f SET created_at = present,
                    blocked_until = f.blocked_until - (f.created_at - present)
                WHERE f.account_id = for_account AND f.method = for_method AND f.chat IN (0, for_chat)
                  AND f.created_at > present;
                wait := wait - extract(epoch FROM blocked_at - present);
            END IF;
            RETURN;
        END IF;

        FOREACH pace IN ARRAY paces LOOP
            every := CASE pace.chat WHEN 0 THEN pace_interval ELSE chat_interval END;
            at_once := CASE pace.chat WHEN 0 THEN burst ELSE chat_burst END;
            factors := factors || 1 + (pace.widened - 1)
                * power(0.5, greatest(extract(epoch FROM present - pace.widened_at), 0) / half_life);
            backlog := greatest(extract(epoch FROM pace.tat - present), 0);
            gap := every * factors[cardinality(factors)]
                * least(greatest((backlog / (at_once * every) - slow_from) / (1 - slow_from), 0), 1);
            wait := greatest(0, backlog - (at_once - 1) * every,
                             extract(epoch FROM pace.last_at - present) + gap);
            reason := CASE pace.chat WHEN 0 THEN 'pace' ELSE 'chat pace' END;
            IF wait > 0.000001 THEN
                RETURN;
            END IF;
        END LOOP;

        UPDATE call_paces p SET last_at = present, tat = greatest(p.tat, present) + interval '1 second'
            * CASE p.chat WHEN 0 THEN pace_interval * factors[1] ELSE chat_interval * factors[2] END
        WHERE p.account_id = for_account AND p.method = bucket AND p.chat = ANY (chats);
        INSERT INTO rate_limits AS r (account_id, method, window_start, call_count, last_call_at)
        VALUES (for_account, for_method, date_bin('1 minute', present, 'epoch'), 1, present)
        ON CONFLICT (account_id, method, window_start)
        DO UPDATE SET call_count = r.call_count + 1, last_call_at = present;
        wait := 0;
        reason := '';
    END
    $$
"""


def upgrade() -> None:
    op.execute("ALTER TABLE accounts ADD COLUMN lease_seconds double precision")
    op.execute(ADMIT)


def downgrade() -> None:
    before = runpy.run_path(str(Path(__file__).with_name("0003_flow_control.py")))["FUNCTIONS"][0]
    op.execute(before.replace("CREATE FUNCTION", "CREATE OR REPLACE FUNCTION"))
    op.execute("ALTER TABLE accounts DROP COLUMN lease_seconds")
