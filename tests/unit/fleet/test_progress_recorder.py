"""What the steps report is written at most once a second, and never in their way."""

import asyncio
import contextlib

from manual_clock import ManualClock, settle

from worker.errors import RetryableError
from worker.fleet.progress import ProgressRecorder
from worker.pipeline.deps import Silent
from worker.store.progress import StepProgress


class _Heard(Silent):
    def __init__(self):
        self.words = []

    def bytes_moved(self, set_name, step, done, total):
        self.words.append((set_name, step, done, total))

    def set_ended(self, set_name, outcome):
        self.words.append((set_name, outcome))


@contextlib.asynccontextmanager
async def _recording(write, inner=None):
    clock = ManualClock()
    recorder = ProgressRecorder(inner or Silent(), write, clock)
    task = asyncio.create_task(recorder.run())
    try:
        yield recorder, clock
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def test_a_thousand_reports_in_a_second_are_one_write_of_the_latest():
    written = []

    async def write(steps):
        written.append(list(steps))

    async with _recording(write) as (recorder, clock):
        await settle()
        assert written == [[]]  # what an earlier owner left is gone
        for done in range(1000):
            recorder.bytes_moved("A.zip", "fetch", done, 1000)
        await clock.advance(0.9)
        assert len(written) == 1
        await clock.advance(0.2)
        assert written[1:] == [[StepProgress("A.zip", "fetch", 999, 1000)]]
        await clock.advance(60)
        assert len(written) == 2  # nothing new, nothing written


async def test_a_set_that_ended_is_no_longer_reported():
    written = []

    async def write(steps):
        written.append([step.set_name for step in steps])

    async with _recording(write) as (recorder, clock):
        recorder.bytes_moved("A.zip", "fetch", 1, 2)
        recorder.bytes_moved("B.zip", "upload", 1, 2)
        await clock.advance(1)
        recorder.set_ended("A.zip", "published")
        await clock.advance(1)
        assert written == [["A.zip", "B.zip"], ["B.zip"]]


async def test_a_database_that_is_away_stops_nothing_and_is_told_later():
    written = []
    away = True

    async def write(steps):
        if away:
            raise RetryableError("PostgreSQL is not reachable")
        written.append(list(steps))

    async with _recording(write) as (recorder, clock):
        recorder.bytes_moved("A.zip", "fetch", 1, 2)
        await clock.advance(1)
        away = False
        recorder.bytes_moved("A.zip", "fetch", 2, 2)
        await clock.advance(1)
        assert written == [[StepProgress("A.zip", "fetch", 2, 2)]]


async def test_whoever_watched_before_still_hears_everything():
    heard = _Heard()

    async def write(steps):
        pass

    async with _recording(write, heard) as (recorder, _):
        recorder.bytes_moved("A.zip", "fetch", 1, 2)
        recorder.set_ended("A.zip", "published")
    assert heard.words == [("A.zip", "fetch", 1, 2), ("A.zip", "published")]
