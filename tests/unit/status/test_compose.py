"""What rows mean: the read model, without a database."""

from dataclasses import replace

import pytest
from fleet_facts import ADA, ALAN, AT, GRACE, NAS_WORKER, SILENT_AFTER, UPLOADING, busy_fleet, quiet_fleet

from worker.domain.calls import Block
from worker.domain.pauses import Pause
from worker.status.compose import compose
from worker.status.facts import Facts
from worker.status.model import SyncState
from worker.store.lookouts import Waiter
from worker.store.missing_packages import HeldDestination
from worker.store.overview import Scanned, WaitingSet
from worker.store.roster import ShutOut


def _sync(facts: Facts):
    return compose(facts, silent_after=SILENT_AFTER).sync


def _waits(facts: Facts) -> dict[str, str]:
    return {item.what: item.why for item in _sync(facts).waiting}


def test_phones_are_masked_and_worker_is_named_by_host_and_pid():
    ada, _, alan = compose(busy_fleet(), silent_after=SILENT_AFTER).accounts
    assert (ada.phone, ada.worker, ada.premium) == ("+1•••••••01", "nas:4711", True)
    assert (alan.name, alan.phone, alan.worker) == ("account 3", "+4•••••••56", None)


def test_an_account_whose_worker_has_signed_off_is_run_by_nobody():
    status = compose(replace(quiet_fleet(), workers=[]), silent_after=SILENT_AFTER)
    assert [account.worker for account in status.accounts] == [None, None]


def test_a_worker_is_silent_when_its_heartbeat_is_older_than_the_lease():
    nas, shed = compose(busy_fleet(), silent_after=SILENT_AFTER).workers
    assert (nas.silent, nas.accounts) == (False, 2)
    assert (shed.silent, shed.accounts) == (True, 0)
    assert _waits(busy_fleet())["shed:99"] == "no heartbeat for 1m 15s"


def test_speed_counts_from_where_the_step_began_and_the_rest_follows_from_it():
    current = _sync(busy_fleet()).current[0]
    assert current.bytes_per_second == pytest.approx(10_000_000)
    assert current.eta == pytest.approx(37)
    assert current.share == pytest.approx(0.63)


def test_a_transfer_that_stands_still_looks_slower_as_time_goes_by():
    stuck = replace(busy_fleet(), under_way=[replace(UPLOADING, seconds=600.0, idle=540.0)])
    assert _sync(stuck).current[0].bytes_per_second == pytest.approx(1_000_000)


def test_a_set_whose_bytes_have_not_moved_yet_has_no_speed_and_no_end():
    begun = replace(busy_fleet(), under_way=[replace(UPLOADING, step="", done=0, moved=0, seconds=0.0)])
    current = _sync(begun).current[0]
    assert (current.step, current.bytes_per_second, current.eta, current.share) == ("start", None, None, 0.0)


def test_an_empty_set_does_not_divide_by_zero():
    assert _sync(replace(busy_fleet(), under_way=[replace(UPLOADING, total=0, done=0)])).current[0].share == 0


@pytest.mark.parametrize(
    ("changes", "state"),
    [
        ({}, SyncState.IDLE),
        ({"workers": []}, SyncState.STOPPED),
        ({"workers": [replace(NAS_WORKER, heartbeat_age=31.0)]}, SyncState.STOPPED),
        ({"pauses": [Pause()]}, SyncState.PAUSED),
        ({"pauses": [Pause(account=1), Pause(account=2)]}, SyncState.PAUSED),
        ({"pauses": [Pause(account=1)]}, SyncState.IDLE),
        ({"under_way": [UPLOADING]}, SyncState.RUNNING),
        ({"counts": {"ready": 2}}, SyncState.RUNNING),
        ({"counts": {"ready": 2}, "held_back_count": 2}, SyncState.WAITING),
        ({"scanned": Scanned(1, 2, 9)}, SyncState.RUNNING),
        (
            {"scanned": Scanned(1, 2, 9), "blocks": [Block(1, "messages.getHistory", 0, 20, 21)]},
            SyncState.WAITING,
        ),
    ],
)
def test_the_fleet_in_one_word(changes, state):
    assert _sync(replace(quiet_fleet(), **changes)).state is state


def test_a_waiting_fleet_resumes_when_the_first_of_its_waits_is_over():
    facts = replace(
        quiet_fleet(),
        counts={"ready": 1},
        held_back_count=1,
        held_back=[WaitingSet(1, "A.zip", "Vault", "ready", "busy", 30.0)],
        blocks=[Block(1, "messages.getHistory", 0, 20.0, 21)],
    )
    assert _sync(facts).resumes_in == 20.0


def test_a_paused_fleet_resumes_when_the_pause_ends_and_not_by_itself_without_an_end():
    assert _sync(replace(quiet_fleet(), pauses=[Pause(seconds_left=7200.0)])).resumes_in == 7200.0
    assert _sync(replace(quiet_fleet(), pauses=[Pause()])).resumes_in is None


def test_pauses_say_what_rests_and_who_wished_it():
    pauses = [Pause(by="eve@nas"), Pause(account=1), Pause(channel=5), Pause(account=2, channel=9)]
    sync = _sync(replace(quiet_fleet(), pauses=pauses, channel_titles={5: "Vault"}))
    assert [pause.what for pause in sync.pauses] == ["everything", "Ada", "Vault", "Grace in channel 9"]
    assert sync.pauses[0].by == "eve@nas"


def test_everything_that_does_not_move_says_why():
    waits = _waits(busy_fleet())
    assert waits["account 3"] == "has to log in again: AUTH_KEY_UNREGISTERED"
    stuck = replace(busy_fleet(), accounts=[replace(ALAN, state="frozen", state_reason="420 …", begun=2)])
    assert _waits(stuck)["account 3"] == (
        "is frozen by Telegram: 420 … — appeal in one of Telegram's apps, then run: worker accounts enable 3;"
        " it has begun 2 uploads: another account that has the bytes goes on with that — to end one without:"
        " worker recover --give-up SET"
    )
    assert waits["Tower.zip in Model Archive"] == "the same content is being published"
    assert waits["Broken.7z in Print Vault"].startswith("given up: ")


def test_without_any_worker_the_fleet_says_how_to_start_one():
    assert "worker run" in _waits(replace(quiet_fleet(), workers=[]))["the fleet"]


def test_an_account_that_no_worker_has_taken_waits_for_one():
    facts = replace(quiet_fleet(), accounts=[ADA, replace(GRACE, worker_id=None)])
    assert _waits(facts) == {"Grace": "no worker has taken it yet"}


def test_nothing_at_all_is_an_answer_too():
    status = compose(Facts(at=AT, accounts=[], workers=[]), silent_after=SILENT_AFTER)
    assert status.sync.state is SyncState.STOPPED
    assert (status.sync.waiting, status.rate_limits.restricted, status.activity.total) == ((), False, 0)


def test_an_account_that_may_not_go_on_posting_waits_for_that_right_and_the_command_is_named():
    begun = ShutOut(ADA.id, "Library", is_destination=True, begun=2)
    why = _waits(replace(quiet_fleet(), shut_out=[begun]))["Ada"]
    assert why == (
        "may not post in Library, where it has begun 2 uploads"
        " — make it an administrator there, or run: worker recover --take-over 1"
    )


def test_an_account_that_only_reads_waits_for_nothing_while_another_one_may_post():
    reader = ShutOut(ADA.id, "Library", is_destination=True, begun=0)
    assert "Ada" not in _waits(replace(quiet_fleet(), shut_out=[reader]))
    other = ShutOut(GRACE.id, "Library", is_destination=True, begun=0)
    assert {"Ada", "Grace"} <= _waits(replace(quiet_fleet(), shut_out=[reader, other])).keys()


def test_a_destination_that_waits_for_a_person_is_named_and_the_fleet_waits_with_it():
    facts = replace(
        quiet_fleet(), counts={"ready": 3}, held=[HeldDestination("Library", missing=25, packages=30)]
    )
    status = compose(facts, silent_after=SILENT_AFTER)
    (waiting,) = status.sync.waiting
    assert (waiting.kind, waiting.what, waiting.resumes_in) == ("destination", "Library", None)
    assert "needs you: 25 of 30 packages are missing from Library at once" in waiting.why
    assert "worker recover --accept-missing" in waiting.why
    assert (status.sync.state, status.sync.resumes_in) == (SyncState.WAITING, None)


def test_a_destination_that_no_account_sees_whole_waits_for_one_that_does():
    held = HeldDestination("Library", missing=25, packages=30, is_seen=False)
    (waiting,) = compose(replace(quiet_fleet(), held=[held]), silent_after=SILENT_AFTER).sync.waiting
    assert "no account at work sees all of it" in waiting.why
    assert "worker channels destination CHANNEL" in waiting.why
    assert "--accept-missing" not in waiting.why


def test_an_account_that_sees_too_little_of_the_destination_waits_for_a_look_or_for_a_person():
    waiter = Waiter(ADA.id, "Annex", 24, 57, GRACE.id)
    facts = replace(quiet_fleet(), counts={"ready": 3}, unsighted=[waiter])
    assert "account 2 does so as soon as a worker runs it" in _waits(facts)["Ada"]
    assert _sync(facts).state is SyncState.RUNNING
    alone = replace(facts, accounts=[ADA], unsighted=[replace(waiter, looker=None)])
    assert _waits(alone)["Ada"].startswith("needs you: sees Annex only from message 57 on")
    assert "worker channels destination 24 --nothing-hidden" in _waits(alone)["Ada"]
    assert (_sync(alone).state, _sync(alone).resumes_in) == (SyncState.WAITING, None)


def test_a_former_destination_that_waits_for_a_person_holds_nothing_else_up():
    held = HeldDestination("Annex", missing=25, packages=30, is_chosen=False)
    status = compose(replace(quiet_fleet(), counts={"ready": 3}, held=[held]), silent_after=SILENT_AFTER)
    assert [waiting.what for waiting in status.sync.waiting] == ["Annex"]
    assert status.sync.state is SyncState.RUNNING
