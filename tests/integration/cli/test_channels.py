"""``worker channels`` on what is known already: letting a source rest, and saying what it is about."""

import asyncpg
import pytest
from fleet_rows import execute, insert_fleet
from worker_command import worker


@pytest.mark.parametrize(
    ("before", "command", "said", "after"),
    [
        ("is_enabled = true", ("disable", "@models"), "Model Archive rests.", (False, None)),
        ("is_enabled = false", ("enable", "1001"), "Model Archive is read again.", (True, None)),
        (
            "category = NULL",
            ("category", "Model Archive", "castles"),
            "Model Archive is about castles.",
            (True, "castles"),
        ),
        ("category = 'x'", ("category", "@models"), "Model Archive has no category.", (True, None)),
    ],
)
async def test_a_source_is_changed_by_whatever_name_it_is_known(database_url, before, command, said, after):
    await insert_fleet(database_url)
    await execute(database_url, f"UPDATE channels SET {before} WHERE id = 1")
    ended = await worker("channels", *command, database_url=database_url)
    assert (ended.code, ended.out, ended.err) == (0, f"{said}\n", "")
    connection = await asyncpg.connect(database_url)
    row = await connection.fetchrow("SELECT is_enabled, category FROM channels WHERE id = 1")
    await connection.close()
    assert tuple(row) == after
