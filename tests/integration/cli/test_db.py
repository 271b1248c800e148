"""``worker db``: real processes on real databases."""

import asyncio

import asyncpg
import pytest
from server_folder import server_folder
from sqlalchemy.engine import make_url
from worker_command import installed_worker, worker

from worker.store import migrations


@pytest.fixture
def folder():
    with server_folder("fleet-cli-") as made:
        yield made


async def test_upgrade_sets_up_an_empty_database_and_current_agrees(empty_database_url):
    before = await installed_worker("db", "current", database_url=empty_database_url)
    assert (before.code, before.out) == (1, f"none (this version needs {migrations.head()})\n")
    done = await worker("db", "upgrade", database_url=empty_database_url)
    assert (done.code, done.out, done.err) == (0, f"schema {migrations.head()}\n", "")
    after = await worker("db", "current", database_url=empty_database_url)
    assert (after.code, after.err) == (0, "")


async def test_four_upgrades_at_once_on_an_empty_embedded_database_all_succeed(folder):
    ended = await asyncio.gather(*(worker("db", "upgrade", data_dir=folder / "data") for _ in range(4)))
    assert [(each.code, each.err) for each in ended] == [(0, "")] * 4
    current = await worker("db", "current", data_dir=folder / "data")
    assert current.code == 0
    assert list(folder.glob("data/postgres-*/data/postmaster.pid")) == []


async def test_a_newer_schema_is_left_alone_and_explained(database_url):
    connection = await asyncpg.connect(database_url)
    await connection.execute("UPDATE alembic_version SET version_num = 'ffff'")
    await connection.close()
    upgrade = await worker("db", "upgrade", database_url=database_url)
    assert upgrade.code == 2
    assert upgrade.err.count("\n") == 1
    assert "upgrade archive-fleet on this host" in upgrade.err
    assert (await worker("db", "current", database_url=database_url)).code == 1


async def test_a_role_that_may_not_change_the_schema_is_told_so_in_one_line(empty_database_url):
    name = make_url(empty_database_url).database
    role = f"reader_{name}"
    connection = await asyncpg.connect(empty_database_url)
    try:
        await connection.execute(f"CREATE ROLE {role} LOGIN PASSWORD 'hunter2'")
        head, _, tail = empty_database_url.partition("@")
        del head
        ended = await worker("db", "upgrade", database_url=f"postgresql://{role}:hunter2@{tail}")
    finally:
        await connection.execute(f"DROP ROLE {role}")
        await connection.close()
    assert ended.code == 2
    assert ended.err.count("\n") == 1
    assert "PostgreSQL refused to change the schema: permission denied" in ended.err


@pytest.mark.parametrize(
    "arguments", [["db", "--help"], ["db", "upgrade", "--help"], ["doctor", "--help"], ["--help"]]
)
async def test_every_command_has_help(arguments):
    ended = await worker(*arguments)
    assert ended.code == 0
    assert "Usage: worker" in ended.out


@pytest.mark.parametrize("run", [worker, installed_worker], ids=["forked", "installed"])
async def test_an_unknown_command_exits_2(run):
    ended = await run("frobnicate")
    assert ended.code == 2
    assert "No such command 'frobnicate'" in ended.err
