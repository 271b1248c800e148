"""Thousands of files under one name: what is loaded is bounded, and nobody's keep another's from its set."""

import asyncpg
import pytest
from source_rows import open_source, posted
from sqlalchemy import text

from worker.domain.forming import PROTECTED, family_of
from worker.store import collecting
from worker.store.set_aside import keep_page

_FAMILY = family_of("a.part1.rar")
# What somebody else posts under the name, after the files of the one who is waited for.
_SETS = """
    INSERT INTO archive_sets (channel_id, family, name, format, state, reason, part_count, total_size,
        lead_document_id, posted_at)
    SELECT 1, $1, 'a.rar', 'rar', 'collecting', 'waits for part 1', $3, 10, 10000 + s, now() FROM generate_series(1, $2) s
    RETURNING id
"""
_PARTS = """
    INSERT INTO source_files (channel_id, message_id, document_id, file_name, size, posted_at, family, set_id,
        part_number, poster_id)
    SELECT 1, 10000 + s * $3 + n, 10000 + s * $3 + n, 'a.part' || 1 + n || '.rar', 10, now(), $2, s, n, 666
    FROM unnest($1::bigint[]) s, generate_series(1, $3::integer) n
"""
_LOOSE = """
    INSERT INTO source_files (channel_id, message_id, document_id, file_name, size, posted_at, family, poster_id)
    SELECT 1, 10000 + n, 10000 + n, 'a.r05', 10, now(), $1, 666 FROM generate_series(1, $2) n
"""


@pytest.fixture
async def source(database, database_url):
    return await open_source(database, database_url)


@pytest.fixture
async def raw(database_url):
    connection = await asyncpg.connect(database_url)
    yield connection
    await connection.close()


async def _keep(database, source, *messages):
    async with database.transaction("test.page") as connection:
        await keep_page(connection, source, messages)


async def _flood(raw, sets, parts):
    ids = [row["id"] for row in await raw.fetch(_SETS, _FAMILY, sets, parts)]
    await raw.execute(_PARTS, ids, _FAMILY, parts)


async def test_w3_a_late_part_finds_its_set_whatever_others_have_posted_under_its_name(database, source, raw):
    own = [posted(n, f"a.part{n}.rar", poster_id=7) for n in (1, 3)]
    await _keep(database, source, *own)
    await _flood(raw, 2_500, 1)
    await _keep(database, source, posted(100_000, "a.part2.rar", poster_id=7))
    found = await raw.fetch("SELECT part_count FROM archive_sets WHERE lead_document_id = 5001")
    assert [row["part_count"] for row in found] == [3]


async def test_w3_a_first_volume_finds_the_one_that_came_before_it_whatever_others_have_posted_since(
    database, source, raw
):
    await _keep(database, source, posted(1, "a.r00", poster_id=7))
    await raw.execute(_LOOSE, family_of("a.rar"), 2_500)
    await _keep(database, source, posted(100_000, "a.rar", poster_id=7))
    assert await raw.fetchval("SELECT part_count FROM archive_sets") == 2


async def test_w3_the_files_that_a_page_looks_at_are_bounded(database, source, raw):
    await _flood(raw, 400, 100)
    values = {"channel": 1, "family": _FAMILY, "protected": PROTECTED}
    async with database.transaction("test.open") as connection:
        found = (await connection.execute(text(str(collecting._LOCK_OPEN)), values)).all()
    assert sum(row.part_count for row in found) == collecting._MOST_FILES
