"""When a set that did not get through is tried again."""

import pytest

from worker.config.settings import FleetSettings
from worker.errors import (
    AccountBannedError,
    BusyError,
    CommitUnknownError,
    NotBeforeError,
    OutcomeUnknownError,
    RefusedError,
    RetryableError,
    SetFailedError,
    WorkerTroubleError,
)
from worker.pipeline.patience import after_a_bug, judge
from worker.store.sets import Claim

FLEET = FleetSettings()


def _claim(*, attempts: int = 0, waits: int = 0) -> Claim:
    return Claim(1, 1, 1, 1, "a.zip", "zip", 10, attempts, waits, None, ())


def test_a_failing_set_backs_off_from_a_minute_to_six_hours_and_is_given_up_at_last():
    verdicts = [judge(SetFailedError("broken"), _claim(attempts=n), FLEET) for n in range(8)]
    assert [verdict.seconds for verdict in verdicts] == [60, 120, 240, 480, 960, 1920, 3840, 7680]
    assert [verdict.gives_up for verdict in verdicts] == [False] * 7 + [True]
    assert all(verdict.counts for verdict in verdicts)
    patient = FleetSettings(max_attempts=100)
    assert judge(SetFailedError("broken"), _claim(attempts=50), patient).seconds == 6 * 3600


def test_a_busy_hash_is_looked_at_less_and_less_often_within_a_bound():
    waits = [judge(BusyError("busy", seconds=5), _claim(waits=n), FLEET) for n in range(8)]
    assert [verdict.seconds for verdict in waits] == [5, 10, 20, 40, 80, 160, 300, 300]
    assert [verdict.waits for verdict in waits] == list(range(1, 9))
    assert not any(verdict.counts or verdict.gives_up for verdict in waits)


def test_a_wait_that_telegram_or_the_disk_asks_for_is_kept_to_the_second_and_counts_for_nothing():
    verdict = judge(NotBeforeError("flood", seconds=3601), _claim(attempts=7, waits=3), FLEET)
    assert (verdict.seconds, verdict.waits, verdict.counts, verdict.gives_up) == (3601, 0, False, False)


@pytest.mark.parametrize("error", [RetryableError("lost"), OutcomeUnknownError("no answer")])
def test_an_outage_uses_up_no_attempt_however_long_it_lasts(error):
    verdict = judge(error, _claim(attempts=7, waits=40), FLEET)
    assert (verdict.counts, verdict.gives_up, verdict.seconds) == (False, False, 6 * 3600)


@pytest.mark.parametrize(
    "error",
    [WorkerTroubleError("no database"), CommitUnknownError("no answer"), AccountBannedError("401 …")],
)
def test_trouble_of_the_workers_or_the_accounts_own_lets_the_set_wait_for_nothing(error):
    verdict = judge(error, _claim(attempts=7, waits=3), FLEET)
    assert (verdict.seconds, verdict.waits, verdict.counts, verdict.gives_up) == (0, 3, False, False)


def test_a_refusal_counts():
    assert judge(RefusedError("400 MEDIA_INVALID"), _claim(), FLEET).counts


def test_a_set_that_meets_a_bug_is_given_up_visibly_in_the_end():
    assert not after_a_bug(_claim(), FLEET).gives_up
    assert after_a_bug(_claim(attempts=7), FLEET).gives_up
