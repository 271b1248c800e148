"""How fast ``worker status`` answers on a database that has been in use for years.

    python benchmarks/status.py [--sets 1000000] [--activity 10000000]

Fills a throwaway embedded database, then asks for the status: as the read model does, and as a command.
Exits 1 if the read model takes longer than a second, right after the rows were written or after a vacuum.
"""

import argparse
import asyncio
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import asyncpg

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from worker.status.read import read_status
from worker.store import migrations
from worker.store.database import Database
from worker.store.embedded import open_cluster

ROOT = Path(__file__).resolve().parents[1]
PROMISED_SECONDS = 1.0
ROUNDS = 5

PEOPLE = """
    INSERT INTO workers (id, host, pid, version, heartbeat_at)
    SELECT gen_random_uuid(), 'host ' || n, n, '1', fleet_now() + interval '1 hour'
    FROM generate_series(1, 4) n;
    INSERT INTO accounts (phone, display_name, state, worker_id, lease_until)
    SELECT '+1' || 1000000000 + n, 'Account ' || n, 'ready', (SELECT id FROM workers OFFSET n % 4 LIMIT 1),
           fleet_now() + interval '1 hour'
    FROM generate_series(1, 10) n;
    INSERT INTO channels (telegram_id, title, kind, is_source)
    SELECT 1000 + n, 'Channel ' || n, 'channel', n > 1 FROM generate_series(1, 500) n;
    INSERT INTO scan_cursors (channel_id, last_message_id, newest_message_id, messages_seen, scanned_at)
    SELECT id, 9, 9, 20000, fleet_now() FROM channels WHERE is_source;
    INSERT INTO packages (content_hash, file_name, file_size, archive_type, dest_channel_id, dest_message_id,
                          part_count)
    VALUES (sha256('one'), 'one.zip', 1, 'zip', 1, 1, 1);
    INSERT INTO flood_wait_state (account_id, method, chat, blocked_until, wait_seconds)
    SELECT id, 'messages.getHistory', 0, fleet_now() + interval '1 hour', 600 FROM accounts WHERE id <= 3;
    INSERT INTO rate_limits (account_id, method, window_start, call_count)
    SELECT a.id, 'method.' || m, date_bin('1 minute', fleet_now(), 'epoch') - w * interval '1 minute', 30
    FROM accounts a, generate_series(1, 20) m, generate_series(-30, 59) w;
    -- Searching by name is no part of this, and its index takes most of the time that filling takes.
    DROP INDEX archive_sets_name_search;
"""
# Most are done; a tenth is ready, and a tenth of those has been told to wait.
SETS = """
    INSERT INTO archive_sets (channel_id, name, format, state, reason, part_count, total_size,
                              lead_document_id, package_id, claimed_by, claim_worker_id, claimed_at,
                              not_before, posted_at)
    SELECT 2 + n % 499, 'Archive number ' || n || '.zip', 'zip', state,
           CASE WHEN state = 'failed' OR n % 100 = 3 THEN 'the same content is being published' END,
           1, 1000000, n,
           CASE WHEN state IN ('indexed', 'duplicate') THEN 1 END,
           CASE WHEN state = 'claimed' THEN 1 + n % 10 END,
           CASE WHEN state = 'claimed' THEN (SELECT id FROM workers LIMIT 1) END,
           CASE WHEN state = 'claimed' THEN fleet_now() END,
           fleet_now() + CASE WHEN n % 100 = 3 THEN n % 3600 + 3600 ELSE -60 END * interval '1 second',
           fleet_now()
    FROM generate_series($1::bigint, $2::bigint) n, LATERAL (SELECT CASE
        WHEN n <= 20 THEN 'claimed' WHEN n % 10 = 3 THEN 'ready' WHEN n % 10 = 4 THEN 'duplicate'
        WHEN n % 1000 = 5 THEN 'failed' ELSE 'indexed' END) AS chosen (state)
"""
# Spread over the week that is kept, and an hour into what is the future now and will be the present then.
ACTIVITY = """
    INSERT INTO api_activity (at, account_id, method, success, request_duration_ms)
    SELECT fleet_now() + interval '1 hour' - n * (604800.0 / $3::bigint) * interval '1 second', 1 + n % 10,
           'method.' || n % 20, n % 50 > 0, 40
    FROM generate_series($1::bigint, $2::bigint) n
"""


async def fill(address: str, sets: int, activity: int) -> None:
    connection = await asyncpg.connect(address)
    try:
        started = time.perf_counter()
        await connection.execute(PEOPLE)
        await in_portions(connection, SETS, sets)
        await in_portions(connection, ACTIVITY, activity, activity)
        print(f"{sets:,} sets and {activity:,} activity rows in {time.perf_counter() - started:.0f} s")
    finally:
        await connection.close()


async def in_portions(connection: asyncpg.Connection, statement: str, count: int, *more: int) -> None:
    portion = 500_000
    for first in range(1, count + 1, portion):
        await connection.execute(statement, first, min(count, first + portion - 1), *more, timeout=600)


async def vacuum(address: str) -> None:
    connection = await asyncpg.connect(address)
    try:
        await connection.execute("VACUUM ANALYZE", timeout=600)
    finally:
        await connection.close()


async def measure(address: str, label: str) -> float:
    database = Database(address)
    try:
        times = []
        for _ in range(ROUNDS):
            started = time.perf_counter()
            status = await read_status(database, silent_after=3600.0)
            times.append(time.perf_counter() - started)
    finally:
        await database.close()
    first, *later = (round(each * 1000) for each in times)
    print(f"{label}: first {first} ms, then {min(later)} to {max(later)} ms")
    sync, activity = status.sync, status.activity
    print(f"  {sync.sets_total:,} sets, {activity.total:,} calls, {activity.failed:,} failed")
    return times[0]


def measure_command(address: str) -> None:
    env = {**os.environ, "WORKER_DATABASE_URL": address, "PYTHONPATH": str(ROOT)}
    started = time.perf_counter()
    done = subprocess.run(
        [sys.executable, "-m", "worker", "status", "--compact"],
        env=env,
        capture_output=True,
        text=True,
        check=True,
    )
    print(f"worker status --compact as a process: {(time.perf_counter() - started) * 1000:.0f} ms")
    print(f"  {done.stdout.strip()}")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sets", type=int, default=1_000_000)
    parser.add_argument("--activity", type=int, default=10_000_000)
    wanted = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="fleet-bench-"))
    # For root, PostgreSQL runs as another user, who has to pass through here.
    folder.chmod(0o711)
    try:
        with open_cluster(folder) as address:
            migrations.upgrade(address)
            asyncio.run(fill(address, wanted.sets, wanted.activity))
            slowest = asyncio.run(measure(address, "as written"))
            asyncio.run(vacuum(address))
            slowest = max(slowest, asyncio.run(measure(address, "vacuumed")))
            measure_command(address)
    finally:
        shutil.rmtree(folder)
    return 0 if slowest <= PROMISED_SECONDS else 1


if __name__ == "__main__":
    sys.exit(main())
