"""``worker recover --dry-run``: it says what is wrong, and the next one to look finds everything as it was."""

import asyncpg
import pytest
from recovering import recover
from running_worker import resting_worker
from world import PHONES, open_world

A, B = PHONES
ONE = ("--account", A)
MIB = 1024 * 1024
# What any visit leaves: the lease that keeps others from connecting the account, and which calls were made.
CALLS = {"rate_limits", "api_activity", "call_paces"}
LEASE = {"accounts": {"worker_id", "lease_epoch", "lease_until", "lease_seconds"}}
ALIVE = {"workers": {"heartbeat_at", "memory_bytes"}}
HIDE_SIGHT = """
    UPDATE memberships SET visible_from = NULL WHERE channel_id = (SELECT id FROM channels WHERE is_destination)
"""


@pytest.fixture
async def world(tmp_path, database_url):
    """Two archives are published, and a third one is too large for one message."""
    async with open_world(tmp_path, database_url) as opened:
        opened.settings["WORKER_TRANSFER__STANDARD_LIMIT_MIB"] = "1"
        for _ in range(2):
            await opened.post_archive(opened.sources[0])
        await opened.drain(*ONE)
        yield opened


async def _standing(world) -> list[int]:
    messages = await world.admin.messages(world.destination)
    return [m["id"] for m in messages if m["document_id"] and not m["deleted"]]


async def _dump(world, *, workers: list | None = None, without: frozenset[str] = frozenset()) -> dict:
    """Every row of every table, but for what a visit cannot help writing; of ``workers`` only these."""
    connection = await asyncpg.connect(world.database_url)
    try:
        tables = await connection.fetch(
            "SELECT relname FROM pg_class WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace"
        )
        dump = {}
        for table in sorted({row["relname"] for row in tables} - CALLS - without):
            ignored = {**LEASE, **ALIVE}.get(table, set())
            rows = await connection.fetch(f"SELECT * FROM {table}")
            if table == "workers" and workers is not None:
                rows = [row for row in rows if row["id"] in workers]
            dump[table] = sorted(
                repr({name: value for name, value in row.items() if name not in ignored}) for row in rows
            )
        return dump
    finally:
        await connection.close()


async def _workers(world) -> list:
    return [row["id"] for row in await world.fetch("SELECT id FROM workers")]


async def _damage(world) -> int:
    """A deleted message, an upload that was killed, and news that the database has not heard of; a chat of ours."""
    chat = await world.open_operations_chat()
    await world.admin.delete_messages(world.destination, [(await _standing(world))[0]])
    await world.post_archive(world.sources[0], size=5 * MIB // 2)
    ended = await world.run("run", "--once", *ONE, faults="kill=telegram.messages.SendMedia:after:2")
    assert ended == {"signal": 9}
    await world.until_buried()
    left = await world.admin.post_text(chat, "at work", by=A)
    (account,) = await world.fetch("SELECT id FROM accounts WHERE phone = $1", A)
    number = account["id"]
    await world.fetch(
        f"""INSERT INTO settings (key, value) VALUES ('operations_message:account={number}',
            '{{"chat": {chat}, "message": {left["message_id"]}}}') ON CONFLICT (key) DO UPDATE SET value = excluded.value"""
    )
    await world.fetch(
        "INSERT INTO account_progress (account_id, set_name, step, done_bytes, total_bytes, started_bytes)"
        " VALUES ($1, 'left.zip', 'fetch', 1, 2, 0)",
        number,
    )
    await world.fetch(
        "INSERT INTO requests (kind, account_id, asked_by, awaited_at)"
        " VALUES ('verify', $1, 'eve', fleet_now() - interval '1 hour')",
        number,
    )
    await world.fetch(HIDE_SIGHT)
    await world.admin.create_channel("News", members=list(PHONES))
    await world.admin.set_premium(A, True)
    return chat


async def test_a_dry_run_says_what_it_would_do_and_changes_nothing(world):
    chat = await _damage(world)
    workers, folders = await _workers(world), sorted((world.folder / "data" / "workspace").rglob("*"))
    before = await _dump(world)
    shown = [await world.admin.messages(place) for place in (world.destination, chat)]
    found = await recover(world, "--dry-run")
    after = await _dump(world, workers=workers)
    assert {name for name in before if before[name] != after[name]} == set()
    assert [await world.admin.messages(place) for place in (world.destination, chat)] == shown
    assert sorted((world.folder / "data" / "workspace").rglob("*")) == folders

    assert found["counts"]["claim"] == {"to be released": 1}
    assert found["counts"]["space"] == {"to be given back": 1}
    assert found["counts"]["run"] == {"to be closed": 1}
    assert found["counts"]["folder"] == {"to be removed": 1}
    (upload,) = [item["outcome"] for item in found["listed"] if item["kind"] == "upload"]
    assert upload == "to be finished: 1 of 3 parts recorded, 1 more are there"
    assert found["counts"]["package"] == {"messages standing": 1, "to be withdrawn": 1}


async def test_a_worker_that_looks_for_a_dry_run_changes_nothing_either(world):
    await world.fetch(
        "UPDATE package_parts SET message_id = message_id + 1000"
        " WHERE package_id = (SELECT min(id) FROM packages)"
    )
    async with resting_worker(world):
        await world.fetch(HIDE_SIGHT)
        workers, own = await _workers(world), frozenset({"requests"})
        before, ledger = await _dump(world, without=own), await world.admin.messages(world.destination)
        found = await recover(world, "--dry-run")
        after = await _dump(world, workers=workers, without=own)
    assert {name for name in before if before[name] != after[name]} == set()
    assert await world.admin.messages(world.destination) == ledger
    assert found["counts"]["package"] == {"messages standing": 1, "to be withdrawn": 1}
    (request,) = await world.fetch("SELECT kind, state FROM requests")
    assert tuple(request) == ("recover", "done")


async def test_an_account_that_is_logged_out_is_reported_and_left_as_it_stands(world):
    await world.admin.revoke_sessions(B)
    before = await _dump(world)
    workers = await _workers(world)
    assert await world.run("recover", "--dry-run") == {"exit": 1}
    assert "account 2: failed" in world.workers.logs[-1].read_text()
    assert await _dump(world, workers=workers) == before
