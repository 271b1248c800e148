from dataclasses import replace
from datetime import UTC, datetime

import pytest

from worker.status.set_reasons import why
from worker.store.set_listing import ListedSet

AT = datetime(2026, 3, 1, 14, 2, tzinfo=UTC)
SET = ListedSet(
    id=42, name="Kit.rar", channel="Vault", format="rar", state="ready", reason=None, part_count=5, total_size=9,
    attempts=0, package_id=None, posted_at=AT, not_before=AT, wait_seconds=0.0, is_enabled=True, readers=1,
    worker=None, sender=None, premium_readers=0, sender_state=None,
)  # fmt: skip
LOCAL = f"{AT.astimezone():%H:%M}"


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({}, "next in line"),
        ({"reason": "busy"}, "next in line (last time: busy)"),
        ({"readers": 0}, "no account that is logged in reads Vault"),
        ({"is_enabled": False}, "Vault is disabled"),
        ({"sender": "Ada", "reason": "refused"}, "Ada has begun to publish it: refused"),
        (
            {"sender": "Ada", "sender_state": "needs_login", "reason": "refused"},
            (
                "Ada has begun to publish it and does not work: another account that has the bytes goes on"
                " with it — to end it without: worker recover --give-up 42"
            ),
        ),
        (
            {"sender": "Ada", "wait_seconds": 60.0, "reason": "messages.SendMedia: 420 FLOOD_WAIT_60"},
            f"Ada has begun to publish it: flood wait until {LOCAL}",
        ),
        (
            {"state": "collecting", "wait_seconds": 60.0, "reason": "upload.GetFile: 420 FLOOD_WAIT_60"},
            f"flood wait until {LOCAL}",
        ),
        (
            {"wait_seconds": 60.0, "reason": "upload.SaveFilePart: 420 FLOOD_WAIT_60"},
            f"flood wait until {LOCAL}",
        ),
        (
            {"wait_seconds": 60.0, "reason": "upload.getFile is blocked by a flood wait"},
            f"flood wait until {LOCAL}",
        ),
        (
            {"wait_seconds": 60.0, "reason": "disk: 3.1 GiB needed, 1.2 free"},
            f"disk: 3.1 GiB needed, 1.2 free (again at {LOCAL})",
        ),
        ({"state": "collecting", "reason": "waits for part 3 of 5"}, "waits for part 3 of 5"),
        ({"state": "claimed", "worker": "Ada on nas"}, "Ada on nas works on it"),
        ({"state": "published", "package_id": 7}, "package 7, metadata pending"),
        ({"state": "duplicate", "package_id": 7}, "the same as package 7"),
        ({"state": "failed", "reason": "gone"}, "gone — try again: worker sets retry 42"),
        ({"state": "skipped", "reason": "its source forbids copying"}, "its source forbids copying"),
    ],
)
def test_a_reason_is_one_that_a_person_understands(changes, words):
    assert why(replace(SET, **changes)) == words


def test_a_file_above_the_standard_limit_says_who_may_send_it_whole():
    large = replace(SET, part_count=1, total_size=10)
    assert why(large, standard_limit=10) == "next in line"
    needs = "next in line: needs a Premium account or a split; "
    assert why(large, standard_limit=9) == f"{needs}no Premium account reads the channel, so it is split"
    left = why(replace(large, premium_readers=1), standard_limit=9)
    assert left.startswith(f"{needs}a Premium account that reads the channel takes it")
    assert why(replace(large, part_count=2), standard_limit=9) == "next in line", "each file of it is smaller"


def test_a_wait_beyond_today_says_the_date_too():
    assert why(replace(SET, wait_seconds=90_000.0, reason="x")).endswith(", in 1d 1h)")


def test_a_hostile_reason_cannot_steer_the_terminal():
    assert "\x1b" not in why(replace(SET, state="failed", reason="\x1b[31mred"))
