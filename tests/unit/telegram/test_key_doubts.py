"""A claim in the clear that a key is unknown has to be made over minutes before it is believed."""

from worker.errors import AccountUnusableError, RetryableError
from worker.telegram.doubts import CLAIMS, SECONDS, KeyDoubts

OURS, ANOTHER = b"12345678", b"87654321"


class Claims:
    def __init__(self) -> None:
        self.time = 0.0
        self.doubts = KeyDoubts(lambda: self.time)

    def believed(self, key=OURS) -> bool:
        return isinstance(self.doubts.denied(key), AccountUnusableError)

    def claim(self, times, apart) -> list[bool]:
        found = []
        for _ in range(times):
            found.append(self.believed())
            self.time += apart
        return found


def test_a_thousand_claims_within_a_minute_are_not_believed():
    assert not any(Claims().claim(1000, apart=0.06))


def test_a_few_claims_hours_apart_are_not_believed_before_there_are_enough_of_them():
    assert Claims().claim(CLAIMS, apart=3600.0) == [False] * (CLAIMS - 1) + [True]


def test_claims_over_minutes_on_fresh_connections_are_believed():
    claims = Claims()
    apart = SECONDS / 8
    assert claims.claim(9, apart)[:8] == [False] * 8
    assert claims.believed()


def test_one_answer_under_the_key_begins_the_count_anew():
    claims = Claims()
    claims.claim(8, apart=SECONDS / 8)
    claims.doubts.proven(OURS)
    assert claims.claim(8, apart=SECONDS / 8) == [False] * 8


def test_what_is_said_of_one_key_says_nothing_of_another():
    claims = Claims()
    claims.claim(8, apart=SECONDS / 8)
    assert claims.believed()
    assert not claims.believed(ANOTHER)


def test_a_claim_that_is_not_believed_is_tried_again_and_says_what_to_look_at():
    denied = KeyDoubts().denied(OURS)
    assert isinstance(denied, RetryableError)
    assert "-404" in denied.what
    assert "network and proxy" in denied.remedy
