"""A message was edited to carry what cannot be written down, and nobody heard of it."""

from types import SimpleNamespace

import asyncpg
from source_rows import open_source, posted

from worker.pipeline.swapped import note_swapped
from worker.store import proofs
from worker.store.set_aside import keep_page, set_aside_by_channel


async def test_a_set_loses_a_part_whose_message_carries_what_cannot_be_kept(database, database_url):
    source = await open_source(database, database_url)
    async with database.transaction("test.page") as connection:
        await keep_page(connection, source, [posted(1, "a.part1.rar"), posted(2, "a.part2.rar")])
    (unproven,) = await proofs.next_to_prove(database, 1, most=1, hold=60.0)

    async def messages(*_):
        return {2: posted(2, "a\0.part2.rar", document_id=99)}

    deps = SimpleNamespace(
        database=database, account=SimpleNamespace(id=1), gateway=SimpleNamespace(messages=messages)
    )
    assert await note_swapped(deps, 1, unproven.parts)
    raw = await asyncpg.connect(database_url)
    try:
        left = await raw.fetch("SELECT message_id FROM source_files WHERE set_id = $1", unproven.set_id)
    finally:
        await raw.close()
    assert [row["message_id"] for row in left] == [1]
    (aside,) = await set_aside_by_channel(database)
    assert aside.messages == 1
