"""Rows of a fleet at work, written the way the fleet writes them."""

import asyncpg

NAS = "00000000-0000-0000-0000-000000000001"

_ROWS = f"""
    INSERT INTO workers (id, host, pid, version, memory_bytes, started_at)
    VALUES ('{NAS}', 'nas', 4711, '0.1.0', 45200000, fleet_now() - interval '2 hours');
    INSERT INTO accounts (phone, display_name, username, is_premium, state, worker_id, lease_until)
    VALUES ('+10000000001', 'Ada', 'ada', true, 'ready', '{NAS}', fleet_now() + interval '30 seconds'),
           ('+10000000002', 'Grace', NULL, false, 'ready', '{NAS}', fleet_now() - interval '1 second'),
           ('+10000000003', '', NULL, false, 'needs_login', NULL, NULL);
    INSERT INTO channels (telegram_id, title, username, kind, is_source, is_destination)
    VALUES (1001, 'Model Archive', 'models', 'channel', true, false),
           (1002, 'Print Vault', NULL, 'channel', true, false),
           (1003, 'Library', NULL, 'channel', false, true);
    INSERT INTO scan_cursors (channel_id, last_message_id, newest_message_id, messages_seen, scanned_at)
    VALUES (1, 90, 90, 90, fleet_now()), (2, 50, 0, 30, fleet_now());
    INSERT INTO packages (content_hash, file_name, file_size, archive_type, dest_channel_id, dest_message_id, part_count)
    VALUES (sha256('one'), 'One.zip', 1, 'zip', 3, 1, 1);
    INSERT INTO archive_sets (channel_id, name, format, state, reason, part_count, total_size, lead_document_id, posted_at,
                              package_id, claimed_by, claim_worker_id, claimed_at, not_before)
    VALUES (1, 'One.zip', 'zip', 'indexed', NULL, 1, 1, 1, fleet_now(), 1, NULL, NULL, NULL, fleet_now()),
           (1, 'Two.zip', 'zip', 'claimed', NULL, 1, 1000, 2, fleet_now(), NULL, 1, '{NAS}', fleet_now() - interval '1 minute', fleet_now()),
           (2, 'Three.zip', 'zip', 'ready', NULL, 1, 1, 3, fleet_now(), NULL, NULL, NULL, NULL, fleet_now()),
           (2, 'Four.zip', 'zip', 'ready', 'busy elsewhere', 1, 1, 4, fleet_now(), NULL, NULL, NULL, NULL, fleet_now() + interval '1 hour'),
           (2, 'Five.zip', 'zip', 'ready', 'was busy', 1, 1, 5, fleet_now(), NULL, NULL, NULL, NULL, fleet_now()),
           (2, 'Six.zip', 'zip', 'failed', 'it is broken', 1, 1, 6, fleet_now(), NULL, NULL, NULL, NULL, fleet_now());
    INSERT INTO rate_limits (account_id, method, window_start, call_count)
    VALUES (1, 'messages.getHistory', date_bin('1 minute', fleet_now(), 'epoch'), 40),
           (2, 'messages.getHistory', date_bin('1 minute', fleet_now(), 'epoch') - interval '3 minutes', 28),
           (1, 'upload.getFile', date_bin('1 minute', fleet_now(), 'epoch'), 7),
           (1, 'upload.getFile', date_bin('1 minute', fleet_now(), 'epoch') - interval '5 minutes', 1000),
           (1, 'old.method', date_bin('1 minute', fleet_now(), 'epoch') - interval '70 minutes', 5);
    INSERT INTO api_activity (at, account_id, method, success, error_code)
    VALUES (fleet_now(), 1, 'messages.getHistory', true, NULL),
           (fleet_now(), 1, 'messages.getHistory', false, 'FLOOD_WAIT_420'),
           (fleet_now() - interval '6 minutes', 1, 'messages.getHistory', false, 'TIMEOUT'),
           (fleet_now() - interval '8 days', 1, 'messages.getHistory', true, NULL);
    INSERT INTO flood_wait_state (account_id, method, chat, blocked_until, wait_seconds)
    VALUES (1, 'messages.getHistory', 0, fleet_now() + interval '392 seconds', 420),
           (2, 'messages.sendMedia', 0, fleet_now() - interval '1 second', 60);
    INSERT INTO escalations (at, account_id, method, floods, extra_seconds)
    VALUES (fleet_now() - interval '10 minutes', 1, 'messages.getHistory', 3, 300),
           (fleet_now() - interval '2 days', 2, 'messages.getHistory', 3, 300);
    INSERT INTO call_paces (account_id, method, chat, widened, widened_at)
    VALUES (1, 'messages.getHistory', 0, 4, fleet_now() - interval '15 minutes'),
           (2, 'messages.getHistory', 0, 4, fleet_now() - interval '1 day');
"""


async def insert_fleet(database_url: str) -> None:
    """Two accounts at work and one that is not, sets in every state, a flood wait, some calls."""
    await execute(database_url, _ROWS)


async def execute(database_url: str, statement: str) -> None:
    connection = await asyncpg.connect(database_url)
    try:
        await connection.execute(statement)
    finally:
        await connection.close()
