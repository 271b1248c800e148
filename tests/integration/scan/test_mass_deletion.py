"""Between two messages of a page there may be any number that were deleted unheard of."""

import uuid
from dataclasses import replace
from types import SimpleNamespace

import asyncpg
import pytest
from source_rows import hold, open_source, posted

from worker.errors import FenceLostError
from worker.pipeline.scan import scan_page
from worker.store import workers

_DELETED = 350
_NEWEST = _DELETED + 2


@pytest.fixture
async def raw(database, database_url):
    """The source was read to its end; only its first and its last message still stand."""
    await open_source(database, database_url)
    connection = await asyncpg.connect(database_url)
    await connection.execute(f"""
        INSERT INTO source_files (channel_id, topic_id, message_id, document_id, file_name, size, posted_at, family)
        SELECT 1, 0, id, 5000 + id, 'a' || id || '.txt', 10, fleet_now(), '' FROM generate_series(1, {_NEWEST}) id;
        UPDATE scan_cursors SET last_message_id = {_NEWEST}, reread_to = {_NEWEST};
    """)
    yield connection
    await connection.close()


def _deps(database):
    async def page_after(*_):
        return [posted(1, "a1.txt"), posted(_NEWEST, f"a{_NEWEST}.txt")]

    gateway = SimpleNamespace(page_after=page_after, member_since=lambda _: None)
    return SimpleNamespace(database=database, gateway=gateway)


async def test_what_was_deleted_is_forgotten_some_at_a_time_and_what_is_done_stays_done(database, raw):
    source = replace(await hold(database, top=_NEWEST), position=0)
    assert (await scan_page(_deps(database), source, is_again=True)).position == _NEWEST
    at_once = await raw.fetch("SELECT count(*) FROM source_files WHERE is_gone GROUP BY xmin::text")
    assert sorted(row["count"] for row in at_once) == [50, 100, 100, 100]
    left = await raw.fetch("SELECT message_id FROM source_files WHERE NOT is_gone ORDER BY 1")
    assert [row["message_id"] for row in left] == [1, _NEWEST]


async def test_files_of_a_set_that_is_being_worked_on_hold_up_no_other(database, raw):
    worker_id = uuid.uuid4()
    await workers.register(database, worker_id, host="h", pid=1, version="0", address=None)
    await raw.execute(f"""
        INSERT INTO archive_sets (channel_id, family, name, format, state, part_count, total_size, lead_document_id,
            posted_at, claimed_by, claim_worker_id, claimed_at)
        VALUES (1, 'a', 'a', 'zip', 'claimed', 150, 1500, 1, fleet_now(), 1, '{worker_id}', fleet_now());
        UPDATE source_files SET set_id = 1, part_number = message_id WHERE message_id BETWEEN 2 AND 151;
    """)
    await scan_page(_deps(database), replace(await hold(database, top=_NEWEST), position=0), is_again=True)
    assert await raw.fetchval("SELECT count(*) FROM source_files WHERE is_gone") == _DELETED - 150


async def test_nothing_is_forgotten_by_one_who_no_longer_reads_the_source(database, raw):
    source = replace(await hold(database, top=_NEWEST), position=0)
    await raw.execute("UPDATE scan_cursors SET held_by = NULL")
    with pytest.raises(FenceLostError):
        await scan_page(_deps(database), source, is_again=True)
    assert await raw.fetchval("SELECT count(*) FROM source_files WHERE is_gone") == 0
