"""Knowing a package by the documents it was made of, before anything is downloaded."""

import pytest
from fleet_rows import execute, insert_fleet

from worker.store.originals import Original, originals_of, package_of_documents, save_originals

FILES = [Original("a.part1.rar", 5, 1001, 7, 70), Original("a.part2.rar", 3, 1001, 8, 80)]


@pytest.fixture
async def known(database, database_url):
    await insert_fleet(database_url)
    async with database.transaction("test.originals") as connection:
        await save_originals(connection, 1, FILES)

    async def ask(*documents):
        async with database.reading() as connection:
            return await package_of_documents(connection, documents)

    return ask


async def test_p10_all_documents_in_order_name_the_package(known, database):
    assert await known(70, 80) == 1
    assert await originals_of(database, 1) == FILES


@pytest.mark.parametrize("documents", [(70,), (80,), (80, 70), (70, 80, 90), (70, 81), (99,)])
async def test_p10_a_part_more_less_or_out_of_order_is_not_the_package(known, documents):
    assert await known(*documents) is None


async def test_p10_a_withdrawn_package_is_known_no_more(known, database_url):
    await execute(database_url, "UPDATE packages SET state = 'withdrawn', withdrawn_at = now()")
    assert await known(70, 80) is None


async def test_p10_documents_of_a_set_that_turned_out_a_duplicate_are_known_too(known, database_url):
    await execute(
        database_url,
        "INSERT INTO source_files (channel_id, message_id, document_id, file_name, size, posted_at, set_id, part_number)"
        " SELECT 2, 40 + n, 700 + n, 'b', 1, now(), 1, n FROM generate_series(0, 1) n",
    )
    assert await known(700, 701) == 1
    assert await known(700) is None
