"""How fast ``worker packages search`` finds something among very many packages.

    python benchmarks/search.py [--packages 1000000] [--files 3]

Fills a throwaway embedded database, then searches for words that are rare, common and nowhere, in names and
in the files inside. Exits 1 if any of the searches takes longer than a second.
"""

import argparse
import asyncio
import shutil
import sys
import tempfile
import time
from pathlib import Path

import asyncpg

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from worker.store import migrations
from worker.store.catalogue import list_packages, search_packages
from worker.store.database import Database
from worker.store.embedded import open_cluster

PROMISED_SECONDS = 1.0
ROUNDS = 3
WORDS = """
    CREATE TEMP TABLE words AS
    SELECT n AS word, (ARRAY['castle', 'tower', 'knight', 'dragon', 'ship', 'bridge', 'forest', 'engine',
                             'statue', 'garden', 'wizard', 'temple'])[1 + n % 12] || ' '
                      || substr(md5(n::text), 1, 6) AS name
    FROM generate_series(1, 100000) n
"""
PACKAGES = """
    INSERT INTO packages (content_hash, file_name, file_size, archive_type, dest_channel_id, dest_message_id,
                          part_count, metadata, file_count, creator, tags)
    SELECT sha256(n::text::bytea), 'Creator ' || n % 900 || ' - ' || w.name || ' ' || n || '.zip', 1000,
           'zip', 1, n, 1, 'complete', 3, 'Creator ' || n % 900, ARRAY['tag' || n % 50]
    FROM generate_series(1, $1::int) n JOIN words w ON w.word = 1 + n % 100000
"""
FILES = """
    INSERT INTO package_files (package_id, ordinal, path, size)
    SELECT p.id, f, 'folder ' || f || '/' || substr(md5(p.id::text || f), 1, 10) || '_' || w.name || '.stl',
           10
    FROM packages p JOIN words w ON w.word = 1 + (p.id * 7) % 100000, generate_series(1, $1::int) f
"""
INDEXES = {"packages_name_search": "packages (file_name", "package_files_path_search": "package_files (path"}


async def fill(address: str, packages: int, files: int) -> None:
    connection = await asyncpg.connect(address)
    try:
        await connection.execute(
            "INSERT INTO channels (telegram_id, title, kind) VALUES (1, 'Library', 'channel')"
        )
        await connection.execute(WORDS)
        # Built at the end: one by one takes many times as long.
        for name in INDEXES:
            await connection.execute(f"DROP INDEX {name}")
        await connection.execute(PACKAGES, packages)
        await connection.execute(FILES, files)
        await connection.execute("SET maintenance_work_mem = '512MB'")
        for name, target in INDEXES.items():
            where = target.replace("(", "USING gin (")
            await connection.execute(f"CREATE INDEX {name} ON {where} gin_trgm_ops)")
        await connection.execute("VACUUM ANALYZE packages")
        await connection.execute("VACUUM ANALYZE package_files")
    finally:
        await connection.close()


async def measure(address: str, packages: int) -> bool:
    database = Database(address)
    rare = f"{packages // 2}.zip"
    searches = {
        "a rare name": rare,
        "a common word": "castle",
        "two common words": "castle creator",
        "a file inside": "folder 2 .stl",
        "a rare file inside": "_wizard",
        "nothing": "qqqqxyz",
    }
    good = True
    try:
        for what, words in searches.items():
            took = []
            for _ in range(ROUNDS):
                started = time.perf_counter()
                found = await search_packages(database, words, limit=20)
                took.append(time.perf_counter() - started)
            times = f"{min(took) * 1000:7.1f} ms, slowest {max(took) * 1000:7.1f} ms"
            print(f"{what:<20} {words:<16} {len(found):>3} found  {times}")
            good = good and max(took) <= PROMISED_SECONDS
        started = time.perf_counter()
        listed = await list_packages(database, limit=50, tag="tag7")
        took_listing = (time.perf_counter() - started) * 1000
        print(f"{'list by tag':<20} {'tag7':<16} {len(listed):>3} found  {took_listing:7.1f} ms")
    finally:
        await database.close()
    return good


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--packages", type=int, default=1_000_000)
    parser.add_argument("--files", type=int, default=3, help="files inside each package")
    chosen = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="search-benchmark-"))
    try:
        with open_cluster(folder) as address:
            migrations.upgrade(address)
            started = time.perf_counter()
            asyncio.run(fill(address, chosen.packages, chosen.files))
            filled = time.perf_counter() - started
            print(f"{chosen.packages:,} packages, {chosen.files} files in each, filled in {filled:.0f} s")
            good = asyncio.run(measure(address, chosen.packages))
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    sys.exit(0 if good else 1)


if __name__ == "__main__":
    main()
