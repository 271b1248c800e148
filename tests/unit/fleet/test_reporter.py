"""A reporter says what changed, at its chat's pace, and nothing that nobody needs."""

import asyncio
import contextlib
import itertools

from manual_clock import ManualClock, settle

from worker.errors import RetryableError
from worker.fleet.reporter import Reporter
from worker.flow.outbox import Outbox
from worker.flow.outbox_ops import Lane
from worker.pipeline.deps import Silent
from worker.store.accounts import Account

ADA = Account(1, "+10000000001", "Ada", False, "ready", 7)


class _Chat:
    """A chat as people see it, and the moments at which it was written to."""

    def __init__(self, clock):
        self._clock = clock
        self.messages = {}
        self.writes = []

    def _write(self, verb):
        self.writes.append((self._clock.monotonic(), verb))

    async def send(self, lane, payload, random_id):
        self._write("send")
        message = 100 + len(self.writes)
        self.messages[message] = payload
        return message

    async def edit(self, lane, message, payload):
        self._write("edit")
        self.messages[message] = payload

    async def delete(self, lane, message):
        self._write("delete")
        del self.messages[message]

    @property
    def verbs(self):
        return [verb for _, verb in self.writes]


@contextlib.asynccontextmanager
async def _reporting(keep=None, message=None):
    clock = ManualClock()
    chat = _Chat(clock)
    kept = []

    async def remember(message):
        kept.append(message)

    outbox = Outbox(chat, clock=clock)
    lane = Lane(1, 10)
    reporter = Reporter(ADA, Silent(), outbox, lane, clock, keep=keep or remember, message=message)
    if message is not None:
        chat.messages[message] = "left by an earlier run"
    task = asyncio.create_task(reporter.run())
    try:
        yield reporter, chat, clock, kept
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        await outbox.close()


async def _finish(reporter, clock):
    finishing = asyncio.create_task(reporter.finish("finished"))
    await clock.advance(20)
    finishing.result()


async def test_a_thousand_steps_in_ten_seconds_are_a_write_every_three_seconds():
    async with _reporting() as (reporter, chat, clock, _):
        for done in range(1000):
            reporter.bytes_moved("A.zip", "fetch", done, 1000)
            await clock.advance(0.01)
        await clock.advance(5)
        moments = [at for at, _ in chat.writes]
        assert chat.verbs == ["send"] + ["edit"] * 4
        assert all(later - earlier >= 3 for earlier, later in itertools.pairwise(moments))
        assert list(chat.messages.values()) == ["▶ Ada (+1•••••••01)\nA.zip: fetch 99 % of 1.0 kB"]


async def test_a_step_during_the_first_send_is_shown_without_another_step():
    async with _reporting() as (reporter, chat, clock, _):
        reporter.bytes_moved("A.zip", "fetch", 1, 100)
        await settle()
        reporter.set_ended("A.zip", "published")
        await clock.advance(10)
        assert list(chat.messages.values()) == [
            "▶ Ada (+1•••••••01)\nlooks for new archives\nso far: 1 published"
        ]


async def test_the_summary_is_sent_before_the_message_is_deleted_and_nothing_is_remembered():
    async with _reporting() as (reporter, chat, clock, kept):
        reporter.bytes_moved("A.zip", "fetch", 1, 100)
        await clock.advance(5)
        reporter.set_ended("A.zip", "published")
        await _finish(reporter, clock)
        assert chat.verbs[-2:] == ["send", "delete"]
        assert [text.splitlines()[0] for text in chat.messages.values()] == [
            "■ Ada (+1•••••••01): finished after 5s"
        ]
        assert kept == [101, None]


async def test_without_any_step_nothing_is_said():
    async with _reporting() as (reporter, chat, clock, _):
        await clock.advance(60)
        await _finish(reporter, clock)
        assert chat.writes == []


async def test_the_message_of_an_earlier_run_is_taken_over():
    async with _reporting(message=55) as (reporter, chat, clock, _):
        reporter.bytes_moved("A.zip", "fetch", 1, 100)
        await clock.advance(5)
        assert chat.verbs == ["edit"]
        await _finish(reporter, clock)
        assert 55 not in chat.messages
        assert len(chat.messages) == 1


async def test_sets_given_up_while_an_alert_waits_share_the_next_one():
    async with _reporting() as (reporter, chat, clock, _):
        for number in range(50):
            reporter.set_given_up(f"{number}.zip", "its message is gone")
            await clock.advance(0.1)
        await clock.advance(20)
        heads = [text.splitlines()[0] for text in chat.messages.values()]
        assert len(heads) <= 4
        assert sum(int(head.split(" gave up ")[1].split()[0]) for head in heads) == 50


async def test_alerts_are_said_before_the_last_word():
    async with _reporting() as (reporter, chat, clock, _):
        reporter.bytes_moved("A.zip", "fetch", 1, 100)
        await clock.advance(5)
        reporter.alert("⚠ help")
        await _finish(reporter, clock)
        assert [text[0] for text in chat.messages.values()] == ["⚠", "■"]


async def test_a_muted_reporter_writes_nothing_more():
    async with _reporting() as (reporter, chat, clock, _):
        reporter.mute()
        reporter.bytes_moved("A.zip", "fetch", 1, 100)
        reporter.set_given_up("A.zip", "its message is gone")
        await clock.advance(60)
        await _finish(reporter, clock)
        assert chat.writes == []


async def test_a_database_that_is_away_stops_no_report():
    async def away(message):
        raise RetryableError("the database is away")

    async with _reporting(keep=away) as (reporter, chat, clock, _):
        for done in (1, 50):
            reporter.bytes_moved("A.zip", "fetch", done, 100)
            await clock.advance(5)
        assert chat.verbs == ["send", "edit"]
