"""What a page costs where thousands of files of one name were posted."""

import asyncpg
import pytest
from sqlalchemy import text

from worker.domain.forming import UNCHECKED
from worker.store import collecting

# A set of three parts, not whole, that replaced half of the others; nothing else was posted since.
_WORLD = """
    INSERT INTO channels (telegram_id, title, kind, is_source) VALUES (1, 'Vault', 'channel', true);
    INSERT INTO archive_sets (channel_id, family, name, format, state, reason, found_wanting, part_count, total_size,
        lead_document_id, posted_at, newest_tried)
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


async def _asked(database, raw, loose, first, tried):
    await raw.execute("TRUNCATE channels, archive_sets, source_files RESTART IDENTITY CASCADE")
    world = _WORLD.replace("$LOOSE", str(loose)).replace("$FIRST", str(first)).replace("$TRIED", str(tried))
    await raw.execute(world)
    await raw.execute("ANALYZE source_files, archive_sets")
    async with database.transaction("test.ask") as connection:
        explained = text(f"EXPLAIN (ANALYZE, FORMAT JSON) {collecting._ASK_AGAIN}")
        (found,) = (await connection.execute(explained, _VALUES)).scalar_one()
        return _rows(found["Plan"])


@pytest.mark.parametrize(
    ("first", "tried"),
    [(1, 0), (1, 20_000_000), (10_000_000, 20_000_000)],
    ids=["older", "tried", "newer, tried"],
)
async def test_twice_as_many_files_of_a_name_cost_a_page_twice_as_much(database, raw, first, tried):
    once = await _asked(database, raw, 2_500, first, tried)
    twice = await _asked(database, raw, 5_000, first, tried)
    assert twice <= 2.5 * once
    assert await raw.fetchval("SELECT state FROM archive_sets WHERE NOT to_prove") == "collecting"
