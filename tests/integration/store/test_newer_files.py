"""What a part has replaced is counted, however often it is replaced itself."""

import asyncpg
import pytest

from worker.domain.archive_name import recognise
from worker.domain.archive_set import Named, PostedFile, archive_set
from worker.domain.replacing import Replaced
from worker.store.collecting import ask_again
from worker.store.newer_files import files_beside, replaced_by, settle_with_newer
from worker.store.proofs import next_to_prove, settle_incomplete

# Two parts, and three copies of the second one that belong to no set.
_WORLD = """
    INSERT INTO accounts (phone, state) VALUES ('+1', 'ready');
    INSERT INTO channels (telegram_id, title, kind, is_source) VALUES (1, 'Vault', 'channel', true);
    INSERT INTO memberships (account_id, channel_id, visible_from) VALUES (1, 1, 0);
    INSERT INTO archive_sets (channel_id, family, name, format, state, reason, part_count, total_size,
        lead_document_id, posted_at)
    VALUES (1, 'a', 'a.part1.rar', 'rar', 'collecting', 'it is not whole', 2, 20, 1, now());
    INSERT INTO source_files (channel_id, message_id, document_id, file_name, size, posted_at, family, set_id, part_number)
    SELECT 1, n, n, 'a.part' || n || '.rar', 10, now(), 'a', 1, n - 1 FROM generate_series(1, 2) n;
    INSERT INTO source_files (channel_id, message_id, document_id, file_name, size, posted_at, family)
    SELECT 1, n, n, 'a.part2.rar', 10, now(), 'a' FROM generate_series(3, 5) n;
"""


@pytest.fixture
async def raw(database, database_url):
    connection = await asyncpg.connect(database_url)
    await connection.execute(_WORLD)
    yield connection
    await connection.close()


async def _unproven(database, raw):
    """Set 1, found wanting; what the spare copies make for themselves is not whole."""
    await raw.execute("""
        UPDATE archive_sets SET state = 'collecting', to_prove = id = 1, unended = 0, not_before = now()
    """)
    (one,) = await next_to_prove(database, 1, most=1, hold=60.0)
    return one


async def _take(database, raw, message_id):
    """The set is found whole with this file in the place of its second part."""
    one = await _unproven(database, raw)
    beside = {part.message_id: part for part in await files_beside(database, one)}
    parts = [one.parts[0], beside[message_id]]
    files = [PostedFile(p.message_id, p.document_id, p.file_name, p.size, date=0) for p in parts]
    whole = archive_set([Named(file, recognise(file.file_name)) for file in files])
    assert await settle_with_newer(database, one, whole, beside)


async def test_a_part_that_replaces_another_has_replaced_what_that_one_had(database, raw):
    assert await replaced_by(database, await _unproven(database, raw)) == {}
    for message_id, replaced in [(5, Replaced(2, 1)), (4, Replaced(2, 2)), (3, Replaced(2, 3))]:
        await _take(database, raw, message_id)
        assert await replaced_by(database, await _unproven(database, raw)) == {message_id: replaced}


async def test_a_set_for_which_all_files_beside_it_were_tried_is_not_asked_again_by_its_own_end(
    database, raw
):
    one = await _unproven(database, raw)
    tried = [part.document_id for part in await files_beside(database, one)]
    assert sorted(tried) == [3, 4, 5]
    await settle_incomplete(database, one, "it is not whole", tried)
    assert await raw.fetchval("SELECT to_prove FROM archive_sets WHERE id = 1") is False
    await raw.execute("UPDATE source_files SET document_id = 30 WHERE message_id = 3")
    async with database.transaction("test.ask") as connection:
        await ask_again(connection, 1, "a")
    assert await raw.fetchval("SELECT to_prove FROM archive_sets WHERE id = 1") is True
