"""What a page costs where thousands of files of one name were posted."""

import asyncio

import asyncpg
import pytest
from sqlalchemy import text

from worker.domain.forming import UNCHECKED
from worker.store import collecting

# A set of three parts, not whole, that replaced half of the others; nothing else was posted since.
_WORLD = """
    INSERT INTO channels (telegram_id, title, kind, is_source) VALUES (1, 'Vault', 'channel', true);
    INSERT INTO archive_sets (channel_id, family, name, format, state, reason, found_wanting, part_count, total_size,
        lead_document_id, posted_at, tried)
    VALUES (1, 'a', 'a.part1.rar', 'rar', 'collecting', 'it is not whole', true, 3, 30, 1, now(), $TRIED);
    INSERT INTO source_files (channel_id, message_id, document_id, file_name, size, posted_at, family, set_id, part_number)
    SELECT 1, 1000000 + n, n, 'a.part' || n || '.rar', 10, now(), 'a', 1, n FROM generate_series(1, 3) n;
    INSERT INTO source_files (channel_id, message_id, document_id, file_name, size, posted_at, family, superseded_by)
    SELECT 1, $FIRST + n, n, 'A.part' || 1 + n % 3 || '.rar', 10, now(), 'a', CASE WHEN n > $LOOSE / 2 THEN 1000001 + n % 3 END
    FROM generate_series(1, $LOOSE) n;
"""
_VALUES = {"channel": 1, "family": "a", "unchecked": UNCHECKED, "most": 20}


@pytest.fixture
async def raw(database_url):
    connection = await asyncpg.connect(database_url)
    yield connection
    await connection.close()


def _rows(plan) -> int:
    """How many rows its nodes have looked at, all together."""
    looked_at = sum(
        plan.get(key, 0) for key in plan if key == "Actual Rows" or key.startswith("Rows Removed")
    )
    return looked_at * plan["Actual Loops"] + sum(_rows(below) for below in plan.get("Plans", ()))


async def _make(raw, world, **numbers):
    await raw.execute("TRUNCATE channels, archive_sets, source_files RESTART IDENTITY CASCADE")
    for name, value in numbers.items():
        world = world.replace(f"${name}", str(value))
    await raw.execute(world)
    await raw.execute("ANALYZE source_files, archive_sets")


async def _looked_at(database):
    async with database.transaction("test.ask") as connection:
        explained = text(f"EXPLAIN (ANALYZE, FORMAT JSON) {collecting._ASK_AGAIN}")
        (found,) = (await connection.execute(explained, _VALUES)).scalar_one()
        return _rows(found["Plan"])


# The newest of those that were not replaced: as many as are ever tried, and more.
_ALL_TRIED = "ARRAY(SELECT generate_series($LOOSE / 2 - 50, $LOOSE / 2))"


@pytest.mark.parametrize(
    ("first", "tried"),
    [(1, "'{}'"), (1, _ALL_TRIED), (10_000_000, _ALL_TRIED)],
    ids=["older", "tried", "newer, tried"],
)
async def test_twice_as_many_files_of_a_name_cost_a_page_twice_as_much(database, raw, first, tried):
    looked_at = []
    for loose in (2_500, 5_000):
        await _make(raw, _WORLD, TRIED=tried, LOOSE=loose, FIRST=first)
        looked_at.append(await _looked_at(database))
    assert looked_at[1] <= 2.5 * looked_at[0]
    assert await raw.fetchval("SELECT state FROM archive_sets WHERE NOT to_prove") == "collecting"


# First parts of one name: each is a set of its own that is not whole.
_FIRST_PARTS = """
    INSERT INTO channels (telegram_id, title, kind, is_source) VALUES (1, 'Vault', 'channel', true);
    INSERT INTO archive_sets (channel_id, family, name, format, state, reason, found_wanting, part_count, total_size,
        lead_document_id, posted_at, tried)
    SELECT 1, 'a', 'a.part1.rar', 'rar', 'collecting', 'waits for part 2', true, 1, 10, n, now(), $TRIED
    FROM generate_series(1, $SETS) n;
    INSERT INTO source_files (channel_id, message_id, document_id, file_name, size, posted_at, family, set_id, part_number,
        poster_id)
    SELECT 1, n, n, 'a.part1.rar', 10, now(), 'a', n, 0, CASE WHEN n > 10 THEN 666 ELSE 7 END FROM generate_series(1, $SETS) n;
"""
_LATEST = "ARRAY(SELECT generate_series($SETS - 50, $SETS))"


async def test_w3_twice_as_many_sets_of_one_name_that_are_not_whole_cost_a_page_twice_as_much(database, raw):
    looked_at = []
    for sets in (1_000, 2_000):
        await _make(raw, _FIRST_PARTS, TRIED=_LATEST, SETS=sets)
        looked_at.append(await _looked_at(database))
    assert looked_at[1] <= 2.5 * looked_at[0]


async def test_w3_of_many_sets_of_one_name_that_are_not_whole_the_newest_of_each_poster_are_asked(
    database, raw
):
    await _make(raw, _FIRST_PARTS, TRIED="'{}'", SETS=200)
    for _ in range(10):
        async with database.transaction("test.ask") as connection:
            await collecting.ask_again(connection, 1, "a")
    asked = [row["id"] for row in await raw.fetch("SELECT id FROM archive_sets WHERE to_prove ORDER BY id")]
    # Nothing is newer than the newest of either.
    assert asked == [*range(1, 10), *range(181, 200)]


_DAMAGED = """
    INSERT INTO channels (telegram_id, title, kind, is_source) VALUES (1, 'Vault', 'channel', true);
    INSERT INTO archive_sets (channel_id, family, name, format, state, reason, found_wanting, part_count, total_size,
        lead_document_id, posted_at, tried)
    VALUES (1, 'a', 'a.rar', 'rar', '$STATE', 'it is not whole', true, 2, 20, 1, now(), '{9}');
    INSERT INTO source_files (channel_id, message_id, document_id, file_name, size, posted_at, family, set_id, part_number)
    SELECT 1, n, n, 'a.part' || n || '.rar', 10, now(), 'a', 1, n - 1 FROM generate_series(1, 2) n;
    INSERT INTO source_files (channel_id, message_id, document_id, file_name, size, posted_at, family)
    VALUES (1, 9, $DOCUMENT, 'a.part2.rar', 10, now(), 'a');
"""


async def _ask(database):
    async with database.transaction("test.ask") as connection:
        await collecting.ask_again(connection, 1, "a")


async def test_w4_a_set_is_asked_again_for_a_file_that_comes_below_those_that_were_tried(database, raw):
    """A message that was edited to carry it, or one of a set that turned out not to be whole itself."""
    await _make(raw, _DAMAGED, STATE="collecting", DOCUMENT=9)
    await _ask(database)
    assert not await raw.fetchval("SELECT to_prove FROM archive_sets")
    await raw.execute("""
        INSERT INTO source_files (channel_id, message_id, document_id, file_name, size, posted_at, family)
        VALUES (1, 5, 5, 'a.part2.rar', 10, now(), 'a')
    """)
    await _ask(database)
    assert await raw.fetchval("SELECT to_prove FROM archive_sets")


async def test_w4_a_set_is_asked_again_when_a_message_that_was_tried_carries_another_file(database, raw):
    await _make(raw, _DAMAGED, STATE="collecting", DOCUMENT=10)
    await _ask(database)
    assert await raw.fetchval("SELECT to_prove FROM archive_sets")


_WAITS = """
    SELECT count(*) FROM pg_locks WHERE NOT granted AND pg_backend_pid() = ANY(pg_blocking_pids(pid))
"""


async def test_a_set_that_is_claimed_at_the_moment_in_which_it_is_asked_again_stays_claimed(database, raw):
    await _make(raw, _DAMAGED, STATE="ready", DOCUMENT=10)
    await raw.execute("INSERT INTO accounts (phone, state) VALUES ('+1', 'ready')")
    worker = "00000000-0000-0000-0000-000000000001"
    await raw.execute("INSERT INTO workers (id, host, pid, version) VALUES ($1, 'nas', 1, '1')", worker)
    claiming = raw.transaction()
    await claiming.start()
    await raw.execute(
        "UPDATE archive_sets SET state = 'claimed', claimed_by = 1, claim_worker_id = $1, claimed_at = now()",
        worker,
    )
    asking = asyncio.create_task(_ask(database))
    while not await raw.fetchval(_WAITS):
        assert not asking.done()
    await claiming.commit()
    await asking
    assert await raw.fetchval("SELECT state FROM archive_sets") == "claimed"
