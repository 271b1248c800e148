"""What the server's error texts become."""

import pytest

from worker.errors import (
    AccountBannedError,
    AccountFrozenError,
    AccountUnusableError,
    AlreadyDoneError,
    NoAccessError,
    NotBeforeError,
    PartMissingError,
    ReferenceExpiredError,
    RefusedError,
    RetryableError,
    SentBeforeError,
)
from worker.telegram.failures import MigrateError, failure
from worker.telegram.transfer import UP_BYTES, Upload


@pytest.mark.parametrize(
    ("code", "text", "kind"),
    [
        (420, "FLOOD_WAIT_30", NotBeforeError),
        (420, "FLOOD_PREMIUM_WAIT_3", NotBeforeError),
        (420, "SLOWMODE_WAIT_10", NotBeforeError),
        (401, "AUTH_KEY_UNREGISTERED", AccountUnusableError),
        (401, "SESSION_REVOKED", AccountUnusableError),
        (406, "AUTH_KEY_DUPLICATED", AccountUnusableError),
        (401, "USER_DEACTIVATED_BAN", AccountBannedError),
        (401, "USER_DEACTIVATED", AccountBannedError),
        (420, "FROZEN_METHOD_INVALID", AccountFrozenError),
        (400, "FROZEN_PARTICIPANT_MISSING", AccountFrozenError),
        (400, "CHANNEL_PRIVATE", NoAccessError),
        (403, "CHAT_WRITE_FORBIDDEN", NoAccessError),
        (400, "CHAT_RESTRICTED", NoAccessError),
        (403, "CHANNEL_PUBLIC_GROUP_NA", NoAccessError),
        (406, "CHANNEL_PUBLIC_GROUP_NA", NoAccessError),
        (403, "CHAT_GUEST_SEND_FORBIDDEN", NoAccessError),
        (403, "CHAT_SEND_PLAIN_FORBIDDEN", NoAccessError),
        (403, "ALLOW_PAYMENT_REQUIRED_50", NoAccessError),
        # Of one message, or of carrying it on: the account may go on in the chat.
        (403, "MESSAGE_DELETE_FORBIDDEN", RefusedError),
        (403, "MESSAGE_AUTHOR_REQUIRED", RefusedError),
        (403, "CHAT_FORWARDS_RESTRICTED", RefusedError),
        (400, "FILE_REFERENCE_EXPIRED", ReferenceExpiredError),
        (400, "FILE_PART_7_MISSING", PartMissingError),
        (303, "FILE_MIGRATE_4", MigrateError),
        (500, "RANDOM_ID_DUPLICATE", SentBeforeError),
        (500, "INTERDC_2_CALL_ERROR", RetryableError),
        (-503, "Timeout", RetryableError),
        (400, "MEDIA_INVALID", RefusedError),
        # What no server says that is well.
        (420, "FLOOD_WAIT_" + "9" * 5000, NotBeforeError),
        (303, "FILE_MIGRATE_" + "9" * 5000, RefusedError),
        (303, "FILE_MIGRATE_X", RefusedError),
        (400, "FILE_PART_" + "9" * 5000 + "_MISSING", RefusedError),
    ],
)
def test_every_answer_says_what_the_caller_can_do(code, text, kind):
    assert type(failure("messages.SendMedia", code, text)) is kind


def test_a_wait_is_at_least_a_second_and_an_unknown_one_is_a_minute():
    assert failure("x", 420, "FLOOD_WAIT_0").seconds == 1
    assert failure("x", 420, "FLOOD_WAIT_420").seconds == 420
    assert failure("x", 420, "FLOOD").seconds == 60


def test_what_a_server_says_becomes_a_reason_that_can_be_kept():
    what = failure("x", 400, "LONG\0\ud800" + "A" * 10**6).what
    assert len(what) < 300
    assert "\0" not in what
    what.encode()


def test_only_authorisation_errors_cost_the_login():
    others = [
        (500, "AUTH_RESTART"),
        (-503, "Timeout"),
        (400, "CONNECTION_NOT_INITED"),
        (303, "USER_MIGRATE_2"),
    ]
    assert not any(isinstance(failure("x", *answer), AccountUnusableError) for answer in others)


def test_what_is_as_it_should_be_is_no_failure():
    assert isinstance(failure("messages.EditMessage", 400, "MESSAGE_NOT_MODIFIED"), AlreadyDoneError)
    assert isinstance(failure("channels.DeleteMessages", 400, "MESSAGE_ID_INVALID"), AlreadyDoneError)
    assert isinstance(failure("messages.EditMessage", 400, "MESSAGE_ID_INVALID"), RefusedError)


async def test_a_part_that_the_file_does_not_have_is_not_sent_again():
    upload = Upload(None, name="a", size=UP_BYTES, fill=None, moved=lambda _: None)
    with pytest.raises(RetryableError, match="misses part 7 of a file of 1"):
        await upload.save_again(7)
