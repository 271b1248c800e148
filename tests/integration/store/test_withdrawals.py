"""A message is known by its number and its channel: two destinations number theirs alike."""

import hashlib

import asyncpg
import pytest

from worker.store import remains, removals, withdrawals
from worker.store.withdrawals import PublishedPart, Standing

# Published in the old library as messages 7 and 8, and again, when that was left, in the new one.
_WORLD = """
    INSERT INTO accounts (phone, state) VALUES ('+1', 'ready');
    INSERT INTO channels (telegram_id, title, kind, is_source, is_destination)
    VALUES (1, 'Vault', 'channel', true, false), (2, 'old', 'channel', false, false), (3, 'new', 'channel', false, true);
    INSERT INTO memberships (account_id, channel_id, can_read, visible_from)
    SELECT 1, id, true, 0 FROM channels;
    INSERT INTO archive_sets (channel_id, name, format, state, part_count, total_size, lead_document_id, posted_at)
    VALUES (1, '1.zip', 'zip', 'ready', 1, 20, 7, now());
    INSERT INTO packages (content_hash, file_name, file_size, archive_type, dest_channel_id, dest_message_id, part_count)
    VALUES (sha256('one'), '1.zip', 20, 'zip', 3, $MESSAGE, 2);
    INSERT INTO package_parts (package_id, ordinal, dest_channel_id, message_id, file_name, byte_offset, byte_length)
    VALUES (1, 0, 3, $MESSAGE, '1.zip.001', 0, 10), (1, 1, 3, $MESSAGE + 1, '1.zip.002', 10, 10);
    INSERT INTO uploads (content_hash, set_id, account_id, destination_id, floor_id, total_size, state, package_id, ended_at)
    VALUES (sha256('one'), 1, 1, 2, 1, 20, 'done', 1, now()), (sha256('one'), 1, 1, 3, 1, 20, 'done', 1, now());
    INSERT INTO upload_parts (upload_id, ordinal, file_name, byte_offset, byte_length, random_id, caption, state,
        message_id, sent_at)
    VALUES (1, 0, '1.zip.001', 0, 10, 1, '', 'sent', 7, now()), (1, 1, '1.zip.002', 10, 10, 2, '', 'sent', 8, now()),
           (2, 0, '1.zip.001', 0, 10, 3, '', 'sent', $MESSAGE, now()),
           (2, 1, '1.zip.002', 10, 10, 4, '', 'sent', $MESSAGE + 1, now());
"""
OLD, NEW = 2, 3
_HASH = hashlib.sha256(b"one").digest()


@pytest.fixture
async def raw(database_url):
    connection = await asyncpg.connect(database_url)
    yield connection
    await connection.close()


async def _withdraw(database, channel_id, message_id):
    part = PublishedPart(1, 0, b"", "1.zip.001", message_id, None)
    return await withdrawals.withdraw(database, 1, channel_id, part, republish=True)


async def test_a_message_that_another_channel_lacks_withdraws_no_package(database, raw):
    await raw.execute(_WORLD.replace("$MESSAGE", "7"))
    assert await _withdraw(database, OLD, 7) is None
    assert await raw.fetchval("SELECT state FROM packages") == "published"


async def test_a_message_of_the_same_number_in_another_channel_stays_recorded(database, raw):
    await raw.execute(_WORLD.replace("$MESSAGE", "7"))
    assert (await _withdraw(database, NEW, 7)).has_remains
    gone = await raw.fetch("SELECT upload_id, message_id FROM upload_parts WHERE deleted_at IS NOT NULL")
    assert [tuple(row) for row in gone] == [(2, 7)]


async def test_what_stands_in_another_channel_is_not_recorded_for_this_one(database, raw):
    await raw.execute(_WORLD.replace("$MESSAGE", "7"))
    await raw.execute("DELETE FROM upload_parts WHERE upload_id = 2")
    withdrawn = await _withdraw(database, NEW, 7)
    assert (withdrawn.has_remains, withdrawn.unrecorded) == (False, 1)


async def test_what_an_earlier_destination_keeps_is_left_over_and_no_remains(database, raw):
    await raw.execute(_WORLD.replace("$MESSAGE", "17"))
    assert (await _withdraw(database, NEW, 17)).has_remains
    assert [item.message_id for item in await remains.left_of_package(database, 1)] == [18]
    left = await removals.left_of_ended(database, None)
    assert [(item.destination_id, item.message_id) for item in left] == [(OLD, 7), (OLD, 8)]


async def test_remains_that_nobody_takes_back_leave_those_of_another_channel_their_turn(database, raw):
    await raw.execute(_WORLD.replace("$MESSAGE", "7"))
    await raw.execute("""
        INSERT INTO packages (content_hash, file_name, file_size, archive_type, dest_channel_id, dest_message_id,
            part_count, state, withdrawn_at, has_remains)
        SELECT sha256(CAST(n AS text)::bytea), n || '.zip', 1, 'zip', CASE n WHEN 101 THEN 3 ELSE 2 END, n, 1,
            'withdrawn', now(), true
        FROM generate_series(1, 101) n ORDER BY n
    """)
    assert [each.name for each in await remains.packages_with_remains(database, NEW)] == ["101.zip"]


async def test_remains_are_seen_only_by_an_account_that_can_address_their_channel(database, raw):
    await raw.execute(_WORLD.replace("$MESSAGE", "7"))
    await _withdraw(database, NEW, 7)
    async with database.reading() as connection:
        assert await withdrawals.where_remains_stand(connection, _HASH) == Standing("new", is_seen=False)
    await raw.execute("INSERT INTO peers (account_id, telegram_id, access_hash) VALUES (1, 3, 1)")
    async with database.reading() as connection:
        assert await withdrawals.where_remains_stand(connection, _HASH) == Standing("new", is_seen=True)
