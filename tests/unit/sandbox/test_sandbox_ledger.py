import time

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from worker.sandbox.ledger import Ledger
from worker.sandbox.ledger.floods import ON_ITS_WAY_SECONDS
from worker.sandbox.ledger.journal import CallRecord
from worker.sandbox.ledger.messages import Window

MESSAGES = 12
DELETED = {4, 9}


@pytest.fixture(scope="module")
def ledger(tmp_path_factory):
    ledger = Ledger(tmp_path_factory.mktemp("ledger"), 2_400_000_001)
    account = ledger.accounts.create("+49301", "Test")
    channel = ledger.channels.create("Archives", account.user_id, broadcast=True)
    for number in range(MESSAGES):
        ledger.messages.add(channel.channel_id, account.user_id, text=f"message {number}")
    ledger.messages.delete(channel.channel_id, sorted(DELETED))
    yield ledger
    ledger.close()


def expected(window):
    """The window over a plain list: positions count from the first message older than the offset."""
    ids = [i for i in range(MESSAGES, 0, -1) if i not in DELETED]
    ids = [i for i in ids if (not window.max_id or i < window.max_id) and i > window.min_id]
    start = len([i for i in ids if i >= window.offset_id]) if window.offset_id else 0
    first = start + window.add_offset
    return [i for position, i in enumerate(ids) if first <= position < first + window.limit]


@settings(max_examples=300, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    offset_id=st.integers(0, MESSAGES + 3),
    add_offset=st.integers(-MESSAGES - 2, MESSAGES + 2),
    limit=st.integers(0, MESSAGES + 2),
    max_id=st.integers(0, MESSAGES + 2),
    min_id=st.integers(0, MESSAGES + 2),
)
def test_a_page_of_history_is_a_window_over_the_list_of_messages(ledger, **given_window):
    window = Window(**given_window)
    box = ledger.channels.of(ledger.accounts.by_phone("49301").user_id)[0].channel_id
    assert [message.id for message in ledger.messages.page(box, window)] == expected(window)


def test_what_is_written_is_there_when_the_ledger_is_opened_again(tmp_path):
    first = Ledger(tmp_path, 7)
    account = first.accounts.create("+49301", "Test")
    channel = first.channels.create("Archives", account.user_id, broadcast=True)
    first.messages.add(channel.channel_id, account.user_id, text="kept", random_id=5)
    second = Ledger(tmp_path, 7)
    assert second.messages.by_random_id(account.user_id, channel.channel_id, 0, 5).text == "kept"
    assert second.messages.pts(channel.channel_id) == first.messages.pts(channel.channel_id)
    first.close()
    second.close()


def test_a_call_that_left_before_the_refusal_of_another_was_read_is_not_early(tmp_path):
    ledger = Ledger(tmp_path, 7)
    ledger.floods.note(1, "messages.getHistory", "FLOOD_WAIT_600")
    now = time.time()
    assert not ledger.floods.is_early(1, "messages.getHistory", now)
    assert ledger.floods.is_early(1, "messages.getHistory", now + ON_ITS_WAY_SECONDS)
    assert not ledger.floods.is_early(1, "messages.getHistory", now + 601)
    assert not ledger.floods.is_early(2, "messages.getHistory", now + ON_ITS_WAY_SECONDS)


def test_a_wait_that_is_prolonged_lets_no_more_calls_be_on_their_way(tmp_path, monkeypatch):
    ledger, clock = Ledger(tmp_path, 7), iter([1000.0, 1300.0, 2000.0])
    monkeypatch.setattr(time, "time", lambda: next(clock))
    ledger.floods.note(1, "messages.getHistory", "FLOOD_WAIT_600")
    ledger.floods.note(1, "messages.getHistory", "FLOOD_WAIT_600")
    assert ledger.floods.is_early(1, "messages.getHistory", 1300.0)
    ledger.floods.note(1, "messages.getHistory", "FLOOD_WAIT_600")
    assert not ledger.floods.is_early(1, "messages.getHistory", 2000.0)


def test_a_ledger_of_an_earlier_version_is_given_what_it_lacks(tmp_path):
    first = Ledger(tmp_path, 7)
    first.db.run("ALTER TABLE calls DROP COLUMN chat")
    first.close()
    second = Ledger(tmp_path, 7)
    second.journal.call(CallRecord(1.0, 2, None, "help.getConfig", "", "127.0.0.1", early=False, chat=5))
    assert [call["chat"] for call in second.journal.calls(None, 0)] == [5]
    second.close()


def test_a_transaction_that_fails_leaves_nothing_behind(tmp_path):
    ledger = Ledger(tmp_path, 7)
    account = ledger.accounts.create("+49301", "Test")
    channel = ledger.channels.create("Archives", account.user_id, broadcast=True)

    def half_a_send():
        with ledger.db.transaction():
            ledger.messages.add(channel.channel_id, account.user_id, text="half", random_id=5)
            raise RuntimeError("the other half")

    with pytest.raises(RuntimeError):
        half_a_send()
    assert ledger.messages.everything(channel.channel_id) == []
    assert ledger.messages.by_random_id(account.user_id, channel.channel_id, 0, 5) is None
    ledger.close()
