"""What calls to Telegram cost, were refused, and taught: the governor's memory.

Revision ID: 0003
Revises: 0002
"""

from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None

TABLES = (
    # Calls per minute, for people to read. What may be called is decided by call_paces: a fixed window alone
    # would let a double burst through at its edge.
    """
    CREATE TABLE rate_limits (
        account_id    integer REFERENCES accounts ON DELETE CASCADE,
        method        text,
        window_start  timestamptz,
        call_count    bigint NOT NULL DEFAULT 0,
        last_call_at  timestamptz NOT NULL DEFAULT fleet_now(),
        PRIMARY KEY (account_id, method, window_start)
    )
    """,
    "CREATE INDEX rate_limits_window ON rate_limits (window_start)",
    """
    CREATE TABLE call_paces (
        account_id  integer REFERENCES accounts ON DELETE CASCADE,
        method      text,
        chat        bigint,
        tat         timestamptz NOT NULL DEFAULT fleet_now(),
        last_at     timestamptz NOT NULL DEFAULT fleet_now(),
        widened     double precision NOT NULL DEFAULT 1 CHECK (widened >= 1),
        widened_at  timestamptz NOT NULL DEFAULT fleet_now(),
        PRIMARY KEY (account_id, method, chat)
    )
    """,
    """
    CREATE TABLE api_activity (
        id                   bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
        at                   timestamptz NOT NULL DEFAULT fleet_now(),
        account_id           integer NOT NULL REFERENCES accounts
                             ON DELETE CASCADE,
        method               text NOT NULL,
        success              boolean NOT NULL DEFAULT true,
        error_code           text,
        flood_wait_seconds   integer,
        request_duration_ms  integer NOT NULL DEFAULT 0,
        context              text,
        calls                integer NOT NULL DEFAULT 1 CHECK (calls > 0)
    )
    """,
    "CREATE INDEX api_activity_at ON api_activity (at)",
    """
    CREATE INDEX api_activity_floods ON api_activity (account_id, method, at)
    WHERE flood_wait_seconds IS NOT NULL
    """,
    """
    CREATE TABLE flood_wait_state (
        account_id     integer REFERENCES accounts ON DELETE CASCADE,
        method         text,
        chat           bigint,
        blocked_until  timestamptz NOT NULL,
        wait_seconds   integer NOT NULL,
        created_at     timestamptz NOT NULL DEFAULT fleet_now(),
        PRIMARY KEY (account_id, method, chat)
    )
    """,
    "CREATE INDEX flood_wait_state_blocked ON flood_wait_state (blocked_until)",
    """
    CREATE TABLE escalations (
        id             bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
        at             timestamptz NOT NULL DEFAULT fleet_now(),
        account_id     integer NOT NULL REFERENCES accounts
                       ON DELETE CASCADE,
        method         text NOT NULL,
        floods         integer NOT NULL,
        extra_seconds  integer NOT NULL
    )
    """,
    "CREATE INDEX escalations_at ON escalations (at)",
)

# Each is one round trip and one transaction. Both lock the account's row for the method class first, so a
# flood that is being recorded and a call that asks for permission never pass each other. The time is read
# after the lock was got: it has moved on while waiting for it.
FUNCTIONS = (
    """
    CREATE FUNCTION governor_admit(
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

        SELECT extract(epoch FROM f.blocked_until - present),
               CASE f.chat WHEN 0 THEN 'flood' ELSE 'slow mode' END
        INTO wait, reason FROM flood_wait_state f
        WHERE f.account_id = for_account AND f.method = for_method AND f.chat IN (0, for_chat)
          AND f.blocked_until > present
        ORDER BY f.chat <> 0 LIMIT 1;
        IF FOUND THEN
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
    """,
    """
    CREATE FUNCTION governor_flooded(
        for_account integer, for_method text, for_chat bigint, kind text, seconds integer,
        hold double precision, bucket text, duration_ms integer, for_context text,
        escalate_count integer, escalate_within double precision, escalate_extra double precision,
        widen double precision, widest double precision, half_life double precision,
        OUT rest double precision, OUT escalated boolean
    ) LANGUAGE plpgsql AS $$
    DECLARE
        blocked_chat bigint := CASE kind WHEN 'SLOWMODE_WAIT' THEN for_chat ELSE 0 END;
        present timestamptz;
        floods integer;
        is_news boolean;
        until timestamptz;
    BEGIN
        INSERT INTO call_paces (account_id, method, chat) VALUES (for_account, bucket, 0)
        ON CONFLICT DO NOTHING;
        PERFORM FROM call_paces p
        WHERE p.account_id = for_account AND p.method = bucket AND p.chat = 0 FOR UPDATE;
        present := fleet_now();
        escalated := false;
        rest := hold;
        INSERT INTO api_activity (at, account_id, method, success, error_code, flood_wait_seconds,
                                  request_duration_ms, context)
        VALUES (present, for_account, for_method, false, kind || '_' || seconds, seconds, duration_ms,
                for_context);
        IF kind = 'FLOOD_PREMIUM_WAIT' THEN
            RETURN;
        END IF;

        -- Calls that were in flight together are refused together: while a block stands it is the same flood.
        is_news := NOT EXISTS (
            SELECT FROM flood_wait_state f WHERE f.account_id = for_account AND f.method = for_method
            AND f.chat = blocked_chat AND f.blocked_until > present);
        IF is_news AND kind = 'FLOOD_WAIT' THEN
            SELECT count(*) INTO floods FROM (
                SELECT a.at, max(a.at + a.flood_wait_seconds * interval '1 second') OVER (
                    ORDER BY a.at, a.id ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS covered
                FROM api_activity a
                WHERE a.account_id = for_account AND a.method = for_method
                  AND a.flood_wait_seconds IS NOT NULL
                  AND starts_with(a.error_code, 'FLOOD_WAIT')
                  AND a.at > present - escalate_within * interval '1 second'
            ) seen WHERE seen.covered IS NULL OR seen.at >= seen.covered;
            escalated := floods >= escalate_count;
            IF escalated THEN
                rest := hold + escalate_extra;
                INSERT INTO escalations (at, account_id, method, floods, extra_seconds)
                VALUES (present, for_account, for_method, floods, escalate_extra);
            END IF;
            UPDATE call_paces p SET widened_at = present, widened = least(widest, widen * (1 + (p.widened - 1)
                * power(0.5, greatest(extract(epoch FROM present - p.widened_at), 0) / half_life)))
            WHERE p.account_id = for_account AND p.method = bucket AND p.chat = 0;
        END IF;

        INSERT INTO flood_wait_state AS f (account_id, method, chat, blocked_until, wait_seconds, created_at)
        VALUES (for_account, for_method, blocked_chat, present + rest * interval '1 second', seconds, present)
        ON CONFLICT (account_id, method, chat) DO UPDATE SET
            wait_seconds = CASE WHEN excluded.blocked_until > f.blocked_until
                                THEN excluded.wait_seconds ELSE f.wait_seconds END,
            created_at = CASE WHEN f.blocked_until > present THEN f.created_at ELSE present END,
            blocked_until = greatest(f.blocked_until, excluded.blocked_until)
        RETURNING f.blocked_until INTO until;
        rest := extract(epoch FROM until - present);
        PERFORM pg_notify('fleet_flow', 'block');
    END
    $$
    """,
)


def upgrade() -> None:
    for statement in (*TABLES, *FUNCTIONS):
        op.execute(statement)


def downgrade() -> None:
    """Forget every block and pace: calls may be refused anew until they are learned again."""
    op.execute("DROP FUNCTION governor_flooded")
    op.execute("DROP FUNCTION governor_admit")
    for table in ("escalations", "flood_wait_state", "api_activity", "call_paces", "rate_limits"):
        op.execute(f"DROP TABLE {table}")
