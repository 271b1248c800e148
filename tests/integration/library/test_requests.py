"""Requests as rows: secrets, the death of either side, and what is left of them."""

import uuid
from types import SimpleNamespace

import pytest
from breakable_line import line_to
from fleet_rows import NAS, insert_fleet
from lost_reply import LosesOneReply
from manual_clock import ManualClock

from worker.errors import WorkerTroubleError
from worker.fleet.asking import _wait
from worker.fleet.bell import Bell
from worker.fleet.requests import _PipeCounter
from worker.store import requests
from worker.store.database import Database
from worker.store.request_pipe import CAPACITY, has_room, put_chunk, take_chunks
from worker.store.sealing import Sealer

WORKER = uuid.UUID(NAS)


@pytest.fixture
async def asked(database, database_url):
    await insert_fleet(database_url)
    return await requests.ask(database, "restore", 1, {"package": 7}, asked_by="eve@nas")


async def test_a_request_is_taken_once_and_by_its_own_account(database, asked):
    assert await requests.take_next(database, 2, WORKER) is None
    taken = await requests.take_next(database, 1, WORKER)
    assert (taken.id, taken.kind, taken.arguments) == (asked, "restore", {"package": 7})
    assert await requests.take_next(database, 1, WORKER) is None


async def test_a_secret_is_sealed_and_gone_from_the_table_once_it_was_taken(database, database_url, asked):
    sealer = Sealer(bytes(32))
    await requests.end_request(database, asked, "cancelled")
    await requests.ask(database, "login", 1, {}, secret="12345", sealer=sealer)
    async with database.reading() as connection:
        kept = (
            await connection.exec_driver_sql("SELECT secret FROM requests WHERE kind = 'login'")
        ).scalar_one()
        assert kept is not None
        assert b"12345" not in kept
    taken = await requests.take_next(database, 1, WORKER)
    assert taken.secret(sealer) == "12345"
    async with database.reading() as connection:
        left = await connection.exec_driver_sql("SELECT count(*) FROM requests WHERE secret IS NOT NULL")
        assert left.scalar_one() == 0


async def test_the_request_of_a_dead_command_is_never_begun_and_its_secret_is_erased(
    database, asked, advance_fleet_time
):
    await requests.ask(database, "login", 2, {}, secret="12345", sealer=Sealer(bytes(32)))
    await advance_fleet_time(requests.AWAITED_SECONDS + 1)
    assert await requests.take_next(database, 1, WORKER) is None
    assert (await requests.await_request(database, asked)).state == "cancelled"
    async with database.reading() as connection:
        left = await connection.exec_driver_sql("SELECT count(*) FROM requests WHERE secret IS NOT NULL")
        assert left.scalar_one() == 0


async def test_a_worker_learns_that_nobody_waits_any_more(database, asked, advance_fleet_time):
    await requests.take_next(database, 1, WORKER)
    assert await requests.report_work(database, asked, WORKER, step="reading", done=1, total=9)
    assert not await requests.report_work(database, asked, uuid.uuid4(), step="", done=0, total=0), (
        "not its own"
    )
    await advance_fleet_time(requests.AWAITED_SECONDS - 5)
    await requests.await_request(database, asked)
    await advance_fleet_time(10)
    assert await requests.report_work(database, asked, WORKER, step="reading", done=2, total=9)
    await advance_fleet_time(requests.AWAITED_SECONDS + 1)
    assert not await requests.report_work(database, asked, WORKER, step="reading", done=3, total=9)


async def test_a_report_that_got_no_answer_is_no_reason_to_give_the_work_up(database, database_url, asked):
    await requests.take_next(database, 1, WORKER)
    forgetful = LosesOneReply(database_url)
    counter = _PipeCounter(forgetful, asked, WORKER, Bell())
    counter.progress("reading", 1, 9)
    assert await counter.report()
    assert await counter.report()
    await forgetful.close()


async def test_a_command_sees_how_long_its_worker_has_been_silent(database, asked, advance_fleet_time):
    await requests.take_next(database, 1, WORKER)
    await requests.report_work(database, asked, WORKER, step="reading", done=4, total=9)
    await advance_fleet_time(20)
    standing = await requests.await_request(database, asked)
    assert (standing.state, standing.step, standing.done, standing.total) == ("running", "reading", 4, 9)
    assert 20 <= standing.silent < 60


class _Waits(ManualClock):
    """Whoever sleeps wakes later, after ``then``."""

    async def sleep(self, seconds):
        self._now += seconds
        await self.then()


@pytest.fixture
async def waiting(database_url):
    """A command that waits, over a line that is cut."""
    async with line_to(database_url) as (line, address):
        database, clock = Database(address), _Waits()
        clock.then = line.mend
        await line.cut()
        yield SimpleNamespace(database=database, clock=clock), line
        await line.mend()
        await database.close()


async def test_a_database_that_starts_again_ends_no_command(database, asked, waiting):
    process, _ = waiting
    counter = _PipeCounter(database, asked, WORKER, Bell())
    await requests.end_request(database, asked, "done", result={"bytes": 5})
    assert await _wait(process, asked, Bell(), counter) == {"bytes": 5}


async def test_a_database_that_stays_away_ends_a_command(database, asked, waiting):
    process, line = waiting
    process.clock.then = line.cut
    counter = _PipeCounter(database, asked, WORKER, Bell())
    began = process.clock.monotonic()
    with pytest.raises(WorkerTroubleError):
        await _wait(process, asked, Bell(), counter)
    assert process.clock.monotonic() - began >= requests.AWAITED_SECONDS


async def test_what_has_ended_stays_as_it_ended(database, asked):
    await requests.take_next(database, 1, WORKER)
    await requests.end_request(database, asked, "done", result={"bytes": 5})
    await requests.end_request(database, asked, "cancelled", reason="too late")
    standing = await requests.await_request(database, asked)
    assert (standing.state, standing.result, standing.reason) == ("done", {"bytes": 5}, None)


async def test_the_pipe_keeps_order_and_holds_only_so_much(database, asked):
    for number in range(CAPACITY):
        assert await has_room(database, asked)
        await put_chunk(database, asked, number, bytes([number]))
    assert not await has_room(database, asked)
    assert await take_chunks(database, asked) == [(number, bytes([number])) for number in range(CAPACITY)]
    assert await has_room(database, asked)
    assert await take_chunks(database, asked) == []


async def test_old_requests_are_forgotten_and_live_ones_are_not(database, asked, advance_fleet_time):
    await requests.end_request(database, asked, "done")
    await advance_fleet_time(90_000)
    live = await requests.ask(database, "verify", 1, {})
    assert await requests.forget_old_requests(database) == 1
    assert (await requests.await_request(database, live)).state == "queued"
