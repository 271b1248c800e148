import asyncio
import contextlib
import socket

import pytest

from worker.errors import AccountUnusableError
from worker.telegram.doubts import KeyDoubts
from worker.telegram.envelope import Key
from worker.telegram.line import Line, LineLostError, NoAnswerError
from worker.telegram.part_calls import ReadHashes, SavePart
from worker.telegram.route import Request, Route
from worker.telegram.streak import Streak
from worker.telegram.tether import LOOSE


def route_with(*calls):
    route = Route(
        dc_id=2,
        address=("127.0.0.1", 1),
        bind_address=None,
        proxy=None,
        key=Key(bytes(256)),
        greeting=b"",
        tether=LOOSE,
        doubts=KeyDoubts(),
        streak=Streak(60.0),
    )
    loop = asyncio.get_running_loop()
    route.pending.extend(Request(call, loop.create_future(), asked_at=0.0) for call in calls)
    return route


def part(number):
    return SavePart(1, number, 2, 512 * 1024, lambda _: None)


def question():
    return ReadHashes(bytes(32), 0)


async def test_a_line_is_given_the_next_request_of_the_kind_it_is_for():
    first, asked, second = part(0), question(), part(1)
    route = route_with(first, asked, second)
    assert route.next(upload=False).call is asked
    assert route.next(upload=False) is None
    assert [route.next(upload=True).call for _ in range(2)] == [first, second]


async def test_without_a_kind_requests_leave_in_order():
    first, asked = part(0), question()
    route = route_with(first, asked)
    assert [route.next().call for _ in range(2)] == [first, asked]
    assert route.next() is None


async def test_a_request_that_nobody_waits_for_is_passed_over_and_forgotten():
    given_up, wanted = part(0), part(1)
    route = route_with(given_up, wanted)
    route.pending[0].answer.cancel()
    assert route.next(upload=True).call is wanted
    assert not route.pending


async def test_parts_go_both_ways_if_requests_of_both_kinds_are_there():
    assert not route_with().is_mixed
    assert not route_with(part(0), part(1)).is_mixed
    assert route_with(part(0), question()).is_mixed


async def test_a_line_that_stood_idle_has_the_whole_deadline_for_its_next_request():
    route = route_with(question())
    ours, theirs = socket.socketpair()
    with contextlib.closing(ours), contextlib.closing(theirs):
        line = Line(route, ours, now=0.0)
        line.compose(route.next(), now=100.0)
        assert line.moved_at == 100.0


async def test_lines_that_are_lost_together_make_the_next_one_wait_once():
    route = route_with()
    once = {route.pause(5.0, "it was closed") for _ in range(8)}
    assert len(once) == 1
    assert route.streak.count == 1
    assert route.pause(route.open_at, "it was closed") > max(once)


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (LineLostError("a packet was too long"), LineLostError),
        (NoAnswerError("no answer"), NoAnswerError),
        (OSError("broken pipe"), LineLostError),
    ],
)
async def test_whoever_waits_for_a_line_that_is_lost_hears_which_connection_broke_and_why(error, kind):
    told = route_with().loss(error)
    assert type(told) is kind
    assert str(told).startswith(f"the connection for files to data centre 2 broke: {error}")


async def test_a_refusal_of_the_account_itself_is_told_as_it_is():
    refusal = AccountUnusableError("the session has ended")
    assert route_with().loss(refusal) is refusal
