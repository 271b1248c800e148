"""What an account cannot say itself is said by another, and a chat is complained of once."""

import structlog

from worker.errors import NoAccessError
from worker.fleet.operations import Desk


class _Mouth:
    def __init__(self):
        self.said = []

    def alert(self, text):
        self.said.append(text)


def test_an_alert_is_said_by_one_reporter_that_is_open():
    desk, first, second = Desk(), _Mouth(), _Mouth()
    desk.open(first)
    desk.open(second)
    desk.close(first)
    desk.alert("help")
    assert (first.said, second.said) == ([], ["help"])


def test_an_alert_waits_for_the_first_reporter_that_opens():
    desk, late = Desk(), _Mouth()
    for number in range(30):
        desk.alert(f"help {number}")
    desk.open(late)
    assert late.said == [f"help {number}" for number in range(10, 30)], "bounded: the oldest are dropped"


def test_a_chat_is_complained_of_once_per_account():
    desk = Desk()
    with structlog.testing.capture_logs() as logs:
        for account in (1, 1, 2, 1):
            desk.complain(account, NoAccessError("no right to post"))
    assert [(entry["event"], entry["account"]) for entry in logs] == [
        ("operations.not_writable", 1),
        ("operations.not_writable", 2),
    ]


def test_what_nobody_could_say_is_logged_at_the_end():
    desk = Desk()
    desk.alert("help")
    with structlog.testing.capture_logs() as logs:
        desk.sign_off()
    assert [entry["text"] for entry in logs] == ["help"]
