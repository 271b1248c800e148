"""What Telegram's error texts mean for us: one class of ``worker.errors`` each."""

from __future__ import annotations

import re

from worker.errors import (
    AccountBannedError,
    AccountFrozenError,
    AccountUnusableError,
    AlreadyDoneError,
    FleetError,
    NoAccessError,
    NotBeforeError,
    PartMissingError,
    PasswordNeededError,
    ReferenceExpiredError,
    RefusedError,
    RetryableError,
    SentBeforeError,
)
from worker.telegram.kept_text import clean

# Bounded: a number of a thousand digits is an error of its own.
_WAIT = re.compile(r"(?:FLOOD|FLOOD_PREMIUM|SLOWMODE)_WAIT_(\d{1,10})")
_ELSEWHERE = re.compile(r"(?:PHONE|NETWORK|USER)_MIGRATE_(\d{1,4})")
_FILE_ELSEWHERE = re.compile(r"FILE_MIGRATE_(\d{1,4})")
_PART_MISSING = re.compile(r"FILE_PART_(\d{1,9})_MISSING")
_LONGEST_TEXT = 200
_NO_ACCESS = (
    "CHANNEL_INVALID",
    "CHANNEL_PRIVATE",
    "CHANNEL_PUBLIC_GROUP_NA",
    "CHAT_ADMIN_REQUIRED",
    "CHAT_FORBIDDEN",
    "CHAT_GUEST_SEND_FORBIDDEN",
    "CHAT_RESTRICTED",
    "CHAT_SEND_DOCS_FORBIDDEN",
    "CHAT_SEND_MEDIA_FORBIDDEN",
    "CHAT_WRITE_FORBIDDEN",
    "USER_BANNED_IN_CHANNEL",
    "USER_NOT_PARTICIPANT",
)
# Of 403 only what speaks of the chat: "you may not" is said of single messages too, and of carrying them on.
_NO_ACCESS_403 = re.compile(r"(?!CHAT_FORWARDS_)(?:CHAT|CHANNEL)_\w+|ALLOW_PAYMENT_REQUIRED(?:_\d+)?")
_CLOSED = ("USER_DEACTIVATED", "USER_DEACTIVATED_BAN")
_DELETES = ("channels.DeleteMessages", "messages.DeleteMessages")
_UNKNOWN_WAIT_SECONDS = 60


class MigrateError(RetryableError):
    """The file lies at another data centre."""

    def __init__(self, dc_id: int) -> None:
        super().__init__(f"the file lies at data centre {dc_id}")
        self.dc_id = dc_id


class KeyDeniedError(RetryableError):
    """The other end claims not to know our key, in the clear: nothing is concluded from it yet."""


class ElsewhereError(FleetError):
    """The account belongs to another data centre: log in there."""

    def __init__(self, dc_id: int) -> None:
        super().__init__(f"the account belongs to data centre {dc_id}")
        self.dc_id = dc_id


def failure(method: str, code: int, text: str) -> FleetError:  # noqa: C901, PLR0911 - a line per kind
    """The error to raise when ``method`` was answered with this code and text."""
    # It becomes a reason, which PostgreSQL has to keep and a person to read.
    text = clean(text[:_LONGEST_TEXT])
    what = f"{method}: {code} {text}"
    if (unusable := _of_the_account(what, code, text)) is not None:
        return unusable
    if text == "SESSION_PASSWORD_NEEDED":
        return PasswordNeededError(what, remedy="give the account's password")
    if code == 420 or "_WAIT_" in text:
        found = _WAIT.search(text)
        # A wait of zero would be asked again at once, and refused at once.
        seconds = max(1, int(found[1])) if found else _UNKNOWN_WAIT_SECONDS
        return NotBeforeError(what, seconds=seconds)
    if text in _NO_ACCESS or (code == 403 and _NO_ACCESS_403.fullmatch(text)):
        return NoAccessError(what, remedy="check that the account is a member with the right to do this")
    if found := _PART_MISSING.search(text):
        return PartMissingError(what, part=int(found[1]))
    if text.startswith("FILE_REFERENCE_"):
        return ReferenceExpiredError(what)
    if found := _ELSEWHERE.fullmatch(text):
        return ElsewhereError(int(found[1]))
    if found := _FILE_ELSEWHERE.fullmatch(text):
        return MigrateError(int(found[1]))
    if text == "MESSAGE_NOT_MODIFIED" or (text == "MESSAGE_ID_INVALID" and method in _DELETES):
        return AlreadyDoneError(what)
    if text == "RANDOM_ID_DUPLICATE":
        # The first send with this id is under way or done: its message has to be found, not sent again.
        return SentBeforeError(what)
    if code < 0 or code >= 500:
        return RetryableError(what)
    if text.endswith("API_ID_INVALID"):
        return RefusedError(what, remedy="check telegram.api_id and telegram.api_hash at my.telegram.org")
    return RefusedError(what)


def _of_the_account(what: str, code: int, text: str) -> AccountUnusableError | None:
    """What ends the account's work, whichever call was made."""
    if text.startswith("FROZEN_"):
        # Among the floods by its code only: no wait ends it.
        remedy = "appeal in one of Telegram's apps; once it is lifted, run: worker accounts enable"
        return AccountFrozenError(what, remedy=remedy)
    if text in _CLOSED:
        return AccountBannedError(what, remedy="use another account, or write to recover@telegram.org")
    if (code == 401 and text != "SESSION_PASSWORD_NEEDED") or text == "AUTH_KEY_DUPLICATED":
        return AccountUnusableError(what, remedy="log the account in again: worker accounts login")
    return None


def library_failure(error: BaseException) -> FleetError:
    """What the client library raised by itself, as while it connects."""
    code, text = getattr(error, "CODE", None), getattr(error, "ID", None)
    if isinstance(code, int) and isinstance(text, str):
        return failure("connect", code, text)
    return RetryableError(f"the connection to Telegram failed: {error!r}")


def in_words(error: Exception) -> str:
    """What happened, without what to do about it."""
    return error.what if isinstance(error, FleetError) else str(error)
