"""One message that cannot be kept stops neither its page nor its source."""

import asyncpg
import pytest
from source_rows import hold, open_source, posted

from worker.domain.forming import family_of
from worker.status.compose import compose
from worker.status.facts import read_facts
from worker.store.cursors import advance_cursor
from worker.store.set_aside import keep_page, set_aside_by_channel


@pytest.fixture
async def source(database, database_url):
    return await open_source(database, database_url)


@pytest.fixture
def fetch(database_url):
    async def rows(query):
        connection = await asyncpg.connect(database_url)
        try:
            return [tuple(row) for row in await connection.fetch(query)]
        finally:
            await connection.close()

    return rows


async def _keep(database, source, *messages):
    async with database.transaction("test.page") as connection:
        kept = await keep_page(connection, source, messages)
        await advance_cursor(connection, source, messages[-1].message_id, len(messages))
    return kept


HUGE = 2**63 - 1
POISON = {
    "a size that adds up to more than a number holds": posted(2, "b.part2.rar", size=HUGE),
    "a negative size": posted(2, "a.zip", size=-1),
    "an id out of range": posted(2, "a.zip", document_id=2**70),
    "a poster out of range": posted(2, "a.zip", poster_id=2**64),
    "a NUL": posted(2, "a\0.zip"),
    "half of a pair": posted(2, "a\udc80.zip"),
    "half of a pair in its words": posted(2, "a.zip", text="\ud83d"),
}


@pytest.mark.parametrize("what", POISON)
async def test_w2_a_message_that_cannot_be_kept_is_set_aside_and_its_page_is_kept(
    database, source, fetch, what
):
    kept = await _keep(
        database, source, posted(1, "b.part1.rar", size=HUGE), POISON[what], posted(3, "c.zip")
    )
    assert (kept.files, kept.sets) == (2, 2)
    assert await fetch("SELECT message_id FROM source_files ORDER BY 1") == [(1,), (3,)]
    assert await fetch("SELECT last_message_id FROM scan_cursors") == [(3,)]
    (row,) = await set_aside_by_channel(database)
    assert (row.channel, row.messages) == ("Vault", 1)
    assert row.reason
    status = compose(await read_facts(database), silent_after=60)
    assert status.sync.messages_set_aside == 1
    (waiting,) = [item for item in status.sync.waiting if item.kind == "message"]
    assert waiting.what == "1 message in Vault"
    assert waiting.why.endswith(row.reason)


async def test_a_message_that_can_be_kept_by_now_is_set_aside_no_more(database, source):
    await _keep(database, source, posted(1, "a.zip", size=-1))
    assert len(await set_aside_by_channel(database)) == 1
    async with database.transaction("test.page") as connection:
        await keep_page(connection, await hold(database), [posted(1, "a.zip")])
    assert await set_aside_by_channel(database) == []


async def test_w2_parts_under_a_name_of_nine_kilobytes_find_each_other(database, source, fetch):
    name = "".join(chr(0x4E00 + n) for n in range(3000))
    kept = await _keep(database, source, posted(1, f"{name}.part1.rar"), posted(2, f"{name}.part2.rar"))
    assert (kept.files, kept.sets) == (2, 1)
    assert await set_aside_by_channel(database) == []
    assert await fetch("SELECT part_count FROM archive_sets") == [(2,)]


def test_families_of_long_names_differ_where_the_names_do():
    one, other = (family_of("a" * 3000 + end) for end in ("b.rar", "c.rar"))
    assert one != other
    assert len(one) < 200
