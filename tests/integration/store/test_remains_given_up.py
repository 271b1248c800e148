"""What stands of a withdrawn package: who waits for it, and what a person's word changes."""

import asyncpg
import pytest

from worker.store import remains, removals, withdrawals
from worker.store.withdrawals import PublishedPart, where_remains_stand

# Messages 7 and 8 of one package; set 1 is to be published again. The account sees all of the library.
_WORLD = """
    INSERT INTO accounts (phone, state) VALUES ('+1', 'ready');
    INSERT INTO channels (telegram_id, title, kind, is_source, is_destination)
    VALUES (1, 'Vault', 'channel', true, false), (2, 'Library', 'channel', false, true);
    INSERT INTO memberships (account_id, channel_id, can_read, visible_from) SELECT 1, id, true, 0 FROM channels;
    INSERT INTO peers (account_id, telegram_id, access_hash) VALUES (1, 2, 7);
    INSERT INTO packages (content_hash, file_name, file_size, archive_type, dest_channel_id, dest_message_id, part_count)
    VALUES (sha256('one'), '1.zip', 20, 'zip', 2, 7, 2);
    INSERT INTO package_parts (package_id, ordinal, dest_channel_id, message_id, file_name, byte_offset, byte_length)
    VALUES (1, 0, 2, 7, '1.zip.001', 0, 10), (1, 1, 2, 8, '1.zip.002', 10, 10);
    INSERT INTO archive_sets (channel_id, name, format, state, part_count, total_size, lead_document_id, posted_at,
        content_hash, package_id)
    VALUES (1, '1.zip', 'zip', 'published', 1, 20, 7, now(), sha256('one'), 1),
        (1, '2.zip', 'zip', 'duplicate', 1, 20, 8, now(), sha256('one'), 1);
    INSERT INTO uploads (content_hash, set_id, account_id, destination_id, floor_id, total_size, state, package_id, ended_at,
        reason)
    VALUES (sha256('one'), 1, 1, 2, 1, 20, 'done', 1, now(), 'given up by somebody, too late');
    INSERT INTO upload_parts (upload_id, ordinal, file_name, byte_offset, byte_length, random_id, caption, state,
        message_id, sent_at)
    VALUES (1, 0, '1.zip.001', 0, 10, 1, '', 'sent', 7, now()), (1, 1, '1.zip.002', 10, 10, 2, '', 'sent', 8, now());
"""
LIBRARY = 2


@pytest.fixture
async def raw(database, database_url):
    """Message 7 is gone, and set 2 is ready to publish the content again; set 1 is left out."""
    connection = await asyncpg.connect(database_url)
    await connection.execute(_WORLD)
    part = PublishedPart(1, 0, b"", "1.zip.001", 7, None)
    assert await withdrawals.withdraw(database, 1, LIBRARY, part, republish=False) is not None
    yield connection
    await connection.close()


async def _waited_for(database):
    async with database.reading() as connection:
        content_hash = (await remains.packages_with_remains(database, LIBRARY))[0].content_hash
        return await where_remains_stand(connection, content_hash)


async def test_an_account_that_sees_all_of_the_channel_and_can_be_asked_takes_back_what_is_left(
    database, raw
):
    behind = await remains.remains_behind(database, 2)
    assert await remains.could_take_back(database, behind) == [1]
    await raw.execute("UPDATE memberships SET visible_from = NULL")
    assert await remains.could_take_back(database, behind) == [1]
    assert (await _waited_for(database)).is_seen


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE memberships SET visible_from = 5",
        "UPDATE memberships SET can_read = false WHERE channel_id = 2",
        "UPDATE accounts SET state = 'disabled'",
        "DELETE FROM peers",
    ],
)
async def test_others_do_not(database, raw, change):
    behind = await remains.remains_behind(database, 2)
    await raw.execute(change)
    assert await remains.could_take_back(database, behind) == []
    standing = await _waited_for(database)
    assert standing is None or not standing.is_seen


async def test_only_a_set_that_is_to_be_published_waits_for_what_is_left(database, raw):
    assert await remains.remains_behind(database, 1) is None, "it is skipped"
    assert await remains.remains_behind(database, 2) is not None


async def test_where_an_upload_is_open_that_is_what_is_waited_for(database, raw):
    await raw.execute("""
        INSERT INTO uploads (content_hash, set_id, account_id, destination_id, floor_id, total_size)
        VALUES (sha256('one'), 2, 1, 2, 1, 20)
    """)
    assert await remains.remains_behind(database, 2) is None


async def test_a_persons_word_ends_the_wait_and_what_is_left_can_be_taken_back_as_before(database, raw):
    assert await _waited_for(database) is not None, "what was said before the withdrawal is over"
    behind = await remains.remains_behind(database, 2)
    assert await remains.leave_remains(database, behind, "given up by somebody")
    assert await _waited_for(database) is None
    assert await remains.packages_with_remains(database, LIBRARY) == [behind]
    (item,) = await remains.left_of_package(database, behind.package_id)
    fence = await removals.own_ended(database, item.upload_id)
    await removals.require_removable(database, item, fence)


async def test_a_word_that_comes_when_nothing_is_left_changes_nothing(database, raw):
    behind = await remains.remains_behind(database, 2)
    await remains.settle_remains(database, behind)
    assert not await remains.leave_remains(database, behind, "given up by somebody")
    assert await raw.fetchval("SELECT count(*) FROM uploads WHERE reason IS NOT NULL") == 0


async def test_what_was_published_again_is_settled_no_more(database, raw):
    behind = await remains.remains_behind(database, 2)
    await raw.execute("UPDATE packages SET state = 'published', withdrawn_at = NULL")
    await remains.settle_remains(database, behind)
    assert await raw.fetchval("SELECT has_remains FROM packages")
