"""Which photos are compared with a set, however many stand in its channel."""

import asyncpg
from source_rows import open_source

from worker.domain.archive_name import recognise
from worker.domain.archive_set import Named, PostedFile, archive_set
from worker.store.photos import photos_near

_PHOTOS = """
    INSERT INTO source_photos (channel_id, message_id, reply_to, posted_at)
    SELECT 1, n, CASE WHEN n > 50000 THEN 1 END, now() FROM generate_series(2, 60000) n
"""


async def test_w3_parts_that_lie_years_apart_load_the_photos_near_them_and_no_others(database, database_url):
    await open_source(database, database_url)
    connection = await asyncpg.connect(database_url)
    await connection.execute(_PHOTOS)
    await connection.close()
    names = {1: "a.part1.rar", 40_000: "a.part2.rar"}
    files = [PostedFile(number, number, name, 10, 0, reply_to=30_000) for number, name in names.items()]
    found = archive_set([Named(file, recognise(file.file_name)) for file in files])
    ids = {photo.message_id for photo in await photos_near(database, 1, found)}
    assert {2, 201, 30_000, 39_800, 40_200, 50_001} <= ids
    assert len(ids) < 3_000
