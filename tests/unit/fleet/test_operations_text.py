"""What the operations chat reads."""

from worker.fleet.operations_text import given_up_text, progress_text, summary_text, unusable_text
from worker.store.accounts import Account
from worker.store.progress import StepProgress

ADA = Account(1, "+10000000001", "Ada", False, "ready", 7)


def test_progress_names_the_account_its_steps_and_what_has_ended():
    steps = [StepProgress("A.zip", "fetch", 450_000, 1_000_000), StepProgress("B.zip", "upload", 0, 0)]
    assert progress_text(ADA, steps, {"published": 1204, "duplicate": 2, "lost": 1}) == (
        "▶ Ada (+1•••••••01)\nA.zip: fetch 45 % of 1.0 MB\nB.zip: upload 100 % of 0 B\n"
        "so far: 1,204 published, 2 duplicate"
    )


def test_bytes_within_one_percent_are_the_same_text():
    texts = {
        progress_text(ADA, [StepProgress("A.zip", "fetch", done, 1_000_000)], {})
        for done in range(500_000, 510_000, 1000)
    }
    assert len(texts) == 1


def test_an_account_between_two_sets_says_so():
    assert progress_text(ADA, [], {}) == "▶ Ada (+1•••••••01)\nlooks for new archives"


def test_the_summary_says_how_it_ended_and_what_was_done():
    assert summary_text(ADA, "finished", {"published": 3}, 125.0) == (
        "■ Ada (+1•••••••01): finished after 2m 05s\nso far: 3 published"
    )


def test_an_account_without_a_name_is_known_by_its_masked_number():
    nobody = Account(1, "+10000000001", "", False, "ready", None)
    text = unusable_text(nobody, "needs_login", "401 SESSION_REVOKED")
    assert text == "⚠ +1•••••••01 has to be logged in again\n401 SESSION_REVOKED"


def test_a_thousand_sets_with_endless_names_and_reasons_fit_into_one_message():
    text = given_up_text(ADA, [("📦" * 500, "💥" * 5000)] * 1000)
    assert text.startswith("⚠ Ada (+1•••••••01) gave up 1,000 archives\n")
    assert text.endswith("and 990 more")
    assert len(text.encode("utf-16-le")) // 2 <= 4096
