"""The protocol of docs/protocol.md, walked through in every order; and the mistakes that it was made against."""

import pytest
from fleet_model import FleetModel
from fleet_state import Protocol, Scope

OWNING = Scope(publishing=False)


# A million states take a minute, on a busy machine ten.
@pytest.mark.timeout(1200)
@pytest.mark.parametrize(
    "scope",
    [
        pytest.param(Scope(publishing=False, logins=1), id="owning, a login, two faults"),
        pytest.param(Scope(faults=1), id="publishing, one fault"),
        pytest.param(Scope(workers=1), id="publishing by one worker, two faults"),
        pytest.param(Scope(publishing=False, logins=2), id="owning, two logins", marks=pytest.mark.long),
        pytest.param(Scope(), id="publishing, two faults", marks=pytest.mark.long),
        pytest.param(Scope(logins=1, faults=1), id="everything, one fault", marks=pytest.mark.long),
    ],
)
def test_in_no_order_of_events_is_a_session_shared_or_a_content_doubled_or_lost(scope):
    explored = FleetModel(Protocol(), scope).explore()
    assert explored.mistake is None, f"\n{explored.mistake}"


@pytest.mark.long
def test_an_owner_that_trusts_itself_for_longer_than_a_call_lasts_is_as_safe():
    explored = FleetModel(Protocol(trust=2), Scope(workers=1)).explore()
    assert explored.mistake is None, f"\n{explored.mistake}"


def _story(protocol: Protocol, scope: Scope) -> list[str]:
    mistake = FleetModel(protocol, scope).explore().mistake
    assert mistake is not None, "the model does not see what is wrong with this"
    return [*mistake.story, f"=> {mistake.what}"]


def test_a_login_that_holds_no_lease_and_saves_first_shares_its_session_with_a_worker():
    protocol = Protocol(login_is_a_lease=False, login_saves_last=False)
    assert _story(protocol, Scope(publishing=False, logins=1)) == [
        "worker 1 owns account A",
        "login 1 begins",
        "worker 1 loses its lock connection (A)",
        "login 1 locks account A",
        "login 1 is connected as account A; a code was sent",
        "login 1 writes down its session and that account A is ready, and goes on with its connection",
        "worker 1 is connected as account A",
        "=> two processes are connected with one session of account A",
    ]


def test_a_login_that_does_not_notice_the_loss_of_its_lock_shares_its_session_with_the_next_login():
    assert _story(Protocol(login_is_a_lease=False), Scope(publishing=False, logins=2)) == [
        "login 1 begins",
        "login 1 locks account A",
        "login 1 is connected as account A; a code was sent",
        "login 2 begins",
        "login 1 loses its lock connection (A)",
        "login 2 locks account A",
        "login 2 is connected as account A; a code was sent",
        "=> two processes are connected with one session of account A",
    ]


def test_a_clock_that_steps_ahead_lets_a_second_owner_in():
    scope = Scope(publishing=False, clock_steps=("ahead",))
    assert _story(Protocol(waits_by_own_clock=False), scope) == [
        "worker 1 owns account A",
        "worker 1 is connected as account A",
        "worker 1 loses its lock connection (A)",
        "PostgreSQL's clock steps ahead",
        "worker 2 owns account A",
        "worker 2 is connected as account A",
        "=> two processes are connected with one session of account A",
    ]


def test_a_clock_that_steps_back_makes_a_successor_wait_for_as_long():
    assert _story(Protocol(waits_by_own_clock=False), OWNING) == [
        "worker 1 owns account A",
        "worker 1 is killed",
        "PostgreSQL's clock steps back",
        "worker 2 owns account A, and waits for 99",
        "=> an account waits for as long as the clock was set back",
    ]


def test_where_two_intents_may_be_written_two_who_believe_to_hold_the_lock_double_the_content():
    assert _story(Protocol(has_one_intent=False), Scope(faults=1)) == [
        "worker 1 owns account A",
        "worker 1 is connected as account A",
        "worker 1 (A) reads the archive's message",
        "worker 1 (A) locks the content, which nobody has published",
        "worker 2 owns account B",
        "worker 2 is connected as account B",
        "the lock connection of worker 1 falls silent (A)",
        "worker 2 (B) locks the content, which nobody has published",
        "worker 1 (A) writes its intent",
        "worker 1 (A) writes down that it is about to send",
        "worker 1 (A) sends",
        "worker 2 (B) writes its intent",
        "worker 2 (B) writes down that it is about to send",
        "worker 2 (B) sends",
        "the message of A arrives",
        "the message of B arrives",
        "=> the content is published twice",
    ]


def test_a_successor_that_waits_only_for_the_owners_trust_meets_the_connection_it_left():
    assert _story(Protocol(waits_for_the_wire=False), OWNING) == [
        "worker 1 owns account A",
        "worker 1 is connected as account A",
        "worker 1 loses its lock connection (A)",
        "time passes",
        "worker 2 owns account A",
        "worker 2 is connected as account A",
        "=> two processes are connected with one session of account A",
    ]


def test_a_marker_that_is_believed_makes_a_strangers_message_the_package():
    assert _story(Protocol(marker_is_proven=False), Scope()) == [
        "worker 1 owns account A",
        "worker 1 is connected as account A",
        "worker 1 (A) reads the archive's message",
        "a stranger posts a message with the content's marker",
        "worker 1 (A) adopts the message of a stranger as the package",
        "=> what a stranger posted counts as published, and the archive will never be",
    ]


def test_an_account_that_is_not_asked_what_it_sees_moves_the_cursor_past_an_archive():
    assert _story(Protocol(asks_for_sight=False), Scope()) == [
        "worker 1 owns account A",
        "worker 1 is connected as account A",
        "account A is let in again at the source, and sees only what comes later",
        "worker 1 (A) sees no message and moves the cursor past it",
        "=> the archive is lost to an account that sees it",
    ]


def test_an_upload_that_nobody_can_end_blocks_its_content_for_ever():
    assert _story(Protocol(people_can_end_it=False), Scope(workers=1)) == [
        "worker 1 owns account A",
        "worker 1 is connected as account A",
        "worker 1 (A) reads the archive's message",
        "worker 1 (A) locks the content, which nobody has published",
        "worker 1 (A) writes its intent",
        "Telegram bans account A",
        "Telegram bans account B",
        "=> from here on the content is never published, nor failed with a reason",
    ]


@pytest.mark.long
def test_a_takeover_that_does_not_let_calls_end_doubles_what_was_under_way():
    assert _story(Protocol(lets_calls_end=False), Scope(workers=1)) == [
        "worker 1 owns account A",
        "worker 1 is connected as account A",
        "worker 1 (A) reads the archive's message",
        "worker 1 (A) locks the content, which nobody has published",
        "worker 1 (A) writes its intent",
        "worker 1 (A) writes down that it is about to send",
        "worker 1 (A) sends",
        "Telegram bans account A",
        "worker 1 learns that account A is banned",
        "worker 1 owns account B",
        "worker 1 is connected as account B",
        "worker 1 (B) locks account A too, and waits for 0",
        "worker 1 (B) owns the upload that A began",
        "worker 1 (B) has found no message, and makes the upload its own",
        "worker 1 (B) owns the upload that B began",
        "worker 1 (B) finds no message at the destination",
        "worker 1 (B) writes down that it is about to send",
        "worker 1 (B) sends",
        "the message of A arrives",
        "the message of B arrives",
        "=> the content is published twice",
    ]


@pytest.mark.long
def test_a_process_without_lanes_takes_over_from_its_own_work_in_doubt_and_doubles_what_that_sends_after_it():
    protocol = Protocol(trust=2, has_lanes=False)
    assert _story(protocol, Scope(workers=1)) == [
        "worker 1 owns account A",
        "worker 1 is connected as account A",
        "worker 1 (A) reads the archive's message",
        "worker 1 (A) locks the content, which nobody has published",
        "worker 1 (A) writes its intent",
        "worker 1 (A) writes down that it is about to send",
        "worker 1 loses its lock connection (A)",
        "account A is let in again at the source, and sees only what comes later",
        "worker 1 owns account B",
        "worker 1 is connected as account B",
        "worker 1 (B) locks account A too, and waits for 1",
        "time passes",
        "worker 1 (B) owns the upload that A began",
        "worker 1 (B) has found no message, and makes the upload its own",
        "worker 1 has its locks of account A again",
        "worker 1 (A) sends",
        "the message of A arrives",
        "worker 1 (A) finds that the upload has another owner",
        "worker 1 (B) owns the upload that B began",
        "worker 1 (B) finds no message at the destination",
        "worker 1 (B) writes down that it is about to send",
        "worker 1 (B) sends",
        "the message of B arrives",
        "=> the content is published twice",
    ]


@pytest.mark.long
def test_a_taker_that_goes_by_what_it_once_saw_doubles_what_it_does_not_see():
    assert _story(Protocol(takers_ask_for_sight=False), Scope(workers=1)) == [
        "worker 1 owns account A",
        "worker 1 is connected as account A",
        "worker 1 (A) reads the archive's message",
        "worker 1 (A) locks the content, which nobody has published",
        "worker 1 (A) writes its intent",
        "worker 1 (A) writes down that it is about to send",
        "worker 1 (A) sends",
        "the message of A arrives",
        "Telegram bans account A",
        "worker 1 learns that account A is banned",
        "worker 1 owns account B",
        "worker 1 is connected as account B",
        "worker 1 (B) locks account A too, and waits for 1",
        "time passes",
        "worker 1 (B) owns the upload that A began",
        "account B is let in again at the destination, and sees only what comes later",
        "worker 1 (B) has found no message, and makes the upload its own",
        "worker 1 (B) owns the upload that B began",
        "worker 1 (B) finds no message at the destination",
        "worker 1 (B) writes down that it is about to send",
        "worker 1 (B) sends",
        "the message of B arrives",
        "=> the content is published twice",
    ]
