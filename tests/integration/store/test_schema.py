"""The schema: made by migrations, described by tables, guarded by constraints."""

import asyncio
import subprocess
import sys

import asyncpg
import pytest
from sqlalchemy.ext.asyncio import create_async_engine

from worker.errors import UserError
from worker.store import migrations
from worker.store.connect import connect
from worker.store.database import Database
from worker.store.schema import metadata

_CATALOGUE = {
    "columns": """
        SELECT c.relname, a.attname, format_type(a.atttypid, a.atttypmod), a.attnotnull, a.attidentity,
               pg_get_expr(d.adbin, d.adrelid)
        FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid JOIN pg_namespace n ON n.oid = c.relnamespace
        LEFT JOIN pg_attrdef d ON d.adrelid = c.oid AND d.adnum = a.attnum
        WHERE n.nspname = 'public' AND c.relkind = 'r' AND a.attnum > 0 AND NOT a.attisdropped
          AND c.relname <> 'alembic_version'
        ORDER BY 1, 2""",
    "constraints": """
        SELECT conrelid::regclass::text, conname, pg_get_constraintdef(oid) FROM pg_constraint
        WHERE connamespace = 'public'::regnamespace AND contype <> 'n' AND conrelid::regclass::text <> 'alembic_version'
        ORDER BY 1, 2""",
    "indexes": """
        SELECT tablename, indexname, indexdef FROM pg_indexes
        WHERE schemaname = 'public' AND tablename <> 'alembic_version' ORDER BY 1, 2""",
}


async def _catalogue(url: str) -> dict[str, list[tuple]]:
    connection = await asyncpg.connect(url)
    try:
        return {
            kind: [tuple(row) for row in await connection.fetch(query)] for kind, query in _CATALOGUE.items()
        }
    finally:
        await connection.close()


async def test_migrations_and_tables_agree_down_to_every_check_and_index(database_url, empty_database_url):
    engine = create_async_engine("postgresql+asyncpg://", async_creator=lambda: connect(empty_database_url))
    async with engine.begin() as connection:
        await connection.exec_driver_sql("CREATE EXTENSION pg_trgm")
        await connection.exec_driver_sql(
            "CREATE FUNCTION fleet_now() RETURNS timestamptz LANGUAGE sql STABLE AS 'SELECT clock_timestamp()'"
        )
        await connection.run_sync(metadata.create_all)
    await engine.dispose()

    migrated, described = await _catalogue(database_url), await _catalogue(empty_database_url)

    for kind in _CATALOGUE:
        assert set(migrated[kind]) ^ set(described[kind]) == set(), kind
    assert len(migrated["columns"]) > 100


async def test_upgrade_downgrade_upgrade_comes_back_to_the_same_schema(empty_database_url):
    await asyncio.to_thread(migrations.upgrade, empty_database_url)
    first = await _catalogue(empty_database_url)
    await asyncio.to_thread(migrations.downgrade, empty_database_url, "base")
    assert await _catalogue(empty_database_url) == {"columns": [], "constraints": [], "indexes": []}
    await asyncio.to_thread(migrations.upgrade, empty_database_url)
    assert await _catalogue(empty_database_url) == first


async def test_four_processes_upgrading_at_once_all_succeed(empty_database_url):
    script = "import sys; from worker.store.migrations import upgrade; upgrade(sys.argv[1])"
    processes = [
        subprocess.Popen([sys.executable, "-c", script, empty_database_url], stderr=subprocess.PIPE)
        for _ in range(4)
    ]
    outcomes = [await asyncio.to_thread(process.communicate) for process in processes]
    assert [process.returncode for process in processes] == [0, 0, 0, 0], outcomes

    database = Database(empty_database_url)
    assert await migrations.current(database) == migrations.head()
    await database.close()


async def test_an_empty_an_older_and_a_newer_schema_are_refused_with_their_remedies(empty_database_url):
    database = Database(empty_database_url)
    try:
        with pytest.raises(UserError, match="no schema yet — run: worker db upgrade"):
            await migrations.require_current(database)
        await asyncio.to_thread(migrations.upgrade, empty_database_url)
        await migrations.require_current(database)
        connection = await asyncpg.connect(empty_database_url)
        await connection.execute("UPDATE alembic_version SET version_num = 'ffff'")
        await connection.close()
        with pytest.raises(UserError, match=r"newer than this version's .* — upgrade archive-fleet"):
            await migrations.require_current(database)
    finally:
        await database.close()


_SEED = """
    INSERT INTO workers (id, host, pid, version) VALUES ('00000000-0000-0000-0000-000000000001', 'h', 1, '0');
    INSERT INTO accounts (phone) VALUES ('+1');
    INSERT INTO channels (telegram_id, title, kind) VALUES (1, 'source', 'channel'), (2, 'destination', 'channel');
    INSERT INTO archive_sets (channel_id, name, format, state, part_count, total_size, lead_document_id, posted_at)
        VALUES (1, 'a.zip', 'zip', 'ready', 1, 10, 77, now()), (1, 'b.zip', 'zip', 'ready', 1, 10, 77, now());
"""
_HASH = "decode(repeat('ab', 32), 'hex')"
_CLAIM = "state = 'claimed', claimed_by = 1, claim_worker_id = '00000000-0000-0000-0000-000000000001', claimed_at = now()"
_INTENT = f"INSERT INTO uploads (content_hash, set_id, account_id, destination_id, floor_id, total_size) VALUES ({_HASH}, "
_PACKAGE = "INSERT INTO packages (content_hash, file_name, file_size, archive_type, dest_channel_id, dest_message_id, part_count)"


@pytest.mark.parametrize(
    ("statements", "constraint"),
    [
        ([f"UPDATE archive_sets SET {_CLAIM}"], "archive_sets_one_live_claim"),
        ([_INTENT + "1, 1, 2, 0, 5)", _INTENT + "2, 1, 2, 0, 5)"], "uploads_one_live_intent"),
        ([f"{_PACKAGE} VALUES ({_HASH}, 'a', 1, 'zip', 2, 1, 1)"] * 2, "packages_content_hash_key"),
        (["UPDATE archive_sets SET state = 'claimed'"], "archive_sets_claim_check"),
        (["UPDATE archive_sets SET state = 'duplicate'"], "archive_sets_package_check"),
        (["UPDATE archive_sets SET state = 'failed'"], "archive_sets_reason_check"),
        (["UPDATE archive_sets SET state = 'sleeping'"], "archive_sets_state_check"),
        (["UPDATE archive_sets SET content_hash = 'short'"], "archive_sets_content_hash_check"),
        (["UPDATE channels SET is_destination = true"], "channels_one_destination"),
    ],
)
async def test_the_promises_are_guarded_by_constraints(database_url, statements, constraint):
    connection = await asyncpg.connect(database_url)
    try:
        await connection.execute(_SEED)
        with pytest.raises(asyncpg.IntegrityConstraintViolationError) as refused:
            for statement in statements:
                await connection.execute(statement)
        assert refused.value.constraint_name == constraint
    finally:
        await connection.close()


async def test_the_next_claimable_set_is_found_through_its_index(database_url):
    connection = await asyncpg.connect(database_url)
    try:
        await connection.execute(_SEED)
        await connection.execute(
            "INSERT INTO archive_sets (channel_id, name, format, state, part_count, total_size, lead_document_id, posted_at)"
            " SELECT 2, 'x', 'zip', 'ready', 1, 1, g, now() FROM generate_series(1, 5000) g"
        )
        await connection.execute("ANALYZE archive_sets")
        plan = await connection.fetch(
            "EXPLAIN SELECT id FROM archive_sets WHERE state = 'ready' AND channel_id = 1 AND not_before <= fleet_now()"
            " ORDER BY not_before, id LIMIT 1"
        )
        assert "archive_sets_claimable" in "\n".join(row[0] for row in plan)
    finally:
        await connection.close()


async def test_time_can_be_advanced_for_all_sessions_at_once(database_url, advance_fleet_time):
    connection = await asyncpg.connect(database_url)
    try:
        before = await connection.fetchval("SELECT fleet_now()")
        await advance_fleet_time(3600)
        assert (await connection.fetchval("SELECT fleet_now()") - before).total_seconds() >= 3600
    finally:
        await connection.close()
