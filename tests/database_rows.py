"""All the rows of a database, read once and put into other databases of the same schema."""

import graphlib
import io
from dataclasses import dataclass

import asyncpg

_REFERENCES = """
    SELECT c.relname AS table, array_remove(array_agg(r.relname), NULL) AS referenced
    FROM pg_class c
    LEFT JOIN pg_constraint f ON f.conrelid = c.oid AND f.contype = 'f' AND f.confrelid <> c.oid
    LEFT JOIN pg_class r ON r.oid = f.confrelid
    WHERE c.relkind = 'r' AND c.relnamespace = 'public'::regnamespace
    GROUP BY c.relname
"""
_COUNTERS = (
    "SELECT sequencename, last_value FROM pg_sequences WHERE schemaname = 'public' AND last_value IS NOT NULL"
)


@dataclass(frozen=True, slots=True)
class Rows:
    """The tables, each after those that it refers to, with their rows; and how far every counter was."""

    tables: dict[str, bytes]
    counters: dict[str, int]


async def read_rows(url: str) -> Rows:
    connection = await asyncpg.connect(url)
    try:
        references = {row["table"]: row["referenced"] for row in await connection.fetch(_REFERENCES)}
        tables = {}
        for table in graphlib.TopologicalSorter(references).static_order():
            content = io.BytesIO()
            await connection.copy_from_table(table, output=content, format="binary")
            tables[table] = content.getvalue()
        return Rows(tables, dict(map(tuple, await connection.fetch(_COUNTERS))))
    finally:
        await connection.close()


async def write_rows(url: str, rows: Rows) -> None:
    """Let the database hold these rows and no others."""
    connection = await asyncpg.connect(url)
    try:
        async with connection.transaction():
            await connection.execute(f"TRUNCATE {', '.join(rows.tables)}")
            for table, content in rows.tables.items():
                await connection.copy_to_table(table, source=io.BytesIO(content), format="binary")
            for name, value in rows.counters.items():
                await connection.execute("SELECT setval($1::text::regclass, $2)", name, value)
    finally:
        await connection.close()
