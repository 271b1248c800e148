"""Everything that can go wrong, named after what the caller can do about it.

A message says what happened to which thing; ``remedy`` says what a person can do next. Code that
catches one of these classes knows its duty from the class alone: retry, wait, give up on this set,
give up on this account, or tell the person.
"""

from __future__ import annotations


class FleetError(Exception):
    """The root of all expected failures. Anything else that is raised is a bug."""

    exit_code = 1

    def __init__(self, what: str, *, remedy: str = "") -> None:
        super().__init__(what)
        self.what = what
        self.remedy = remedy

    def __str__(self) -> str:
        return f"{self.what} — {self.remedy}" if self.remedy else self.what


class UserError(FleetError):
    """Tell the person: a setting, an argument or the environment has to change first."""

    exit_code = 2


class RetryableError(FleetError):
    """Retry: the same call may succeed a moment later (network, server trouble)."""


class BrokenLineError(RetryableError):
    """Retry later, not at once: for a while one connection after the other has broken."""


class UnreachableError(BrokenLineError):
    """Give up on this account for the moment: it is the connection for its calls that keeps breaking."""


class WorkerTroubleError(RetryableError):
    """Wait until it is over: the worker's own trouble (database, lease), no fault of what it works on."""


class NotBeforeError(FleetError):
    """Wait: the work is allowed again ``seconds`` from now. Never an attempt, never a failure."""

    def __init__(self, what: str, *, seconds: float, remedy: str = "") -> None:
        super().__init__(what, remedy=remedy)
        self.seconds = seconds


class BusyError(NotBeforeError):
    """Wait: somebody else holds what this work needs. Look again later."""


class DiskTroubleError(NotBeforeError):
    """Wait: this host's disk or memory does not do what it should. No fault of what is worked on."""


class DiskFullError(DiskTroubleError):
    """Wait: the disk takes no more. What was written so far is in the way and has to go."""


class SetFailedError(FleetError):
    """Give up on this set for this attempt; its row keeps the reason."""


class NotWholeError(SetFailedError):
    """Give up on this set until a part of it is posted again: its bytes do not make one archive."""


class SourceGoneError(SetFailedError):
    """The bytes cannot be had from this source any more; another copy of them may exist."""


class AccountUnusableError(FleetError):
    """Give up on this account until a person logs it in again; ``state`` is how it stands from here on."""

    state = "needs_login"


class AccountBannedError(AccountUnusableError):
    """Give up on this account: Telegram has closed it."""

    state = "banned"


class AccountFrozenError(AccountUnusableError):
    """Give up on this account until a person has had Telegram lift what it may not do."""

    state = "frozen"


class PasswordNeededError(FleetError):
    """Ask the person: the login needs the account's password too."""


class LeaseLostError(FleetError):
    """Stop at once: another process may own what this one was working on."""


class FenceLostError(LeaseLostError):
    """Stop at once: the row has a newer owner; nothing was written."""


class OutcomeUnknownError(FleetError):
    """Find out: the call may or may not have been applied. Never repeat it blindly."""


class SentBeforeError(OutcomeUnknownError):
    """Find out: Telegram has had this very send before, and does not say what became of it."""


class CommitUnknownError(OutcomeUnknownError):
    """Read back: the database was lost while a transaction was committed. The worker's own trouble too."""


class NoAccessError(FleetError):
    """This account may not read or write there; another one may."""


class RefusedError(FleetError):
    """Telegram refused the call for a reason that repeating it will not change."""


class ReferenceExpiredError(FleetError):
    """Fetch the message again: the file's reference has run out."""


class PartMissingError(FleetError):
    """Send this file part again: the server no longer has it."""

    def __init__(self, what: str, *, part: int) -> None:
        super().__init__(what)
        self.part = part


class AlreadyDoneError(FleetError):
    """Nothing to do: it was sent, is not modified, or was deleted before. ``message`` is its id, if known."""

    def __init__(self, what: str, *, message: int | None = None) -> None:
        super().__init__(what)
        self.message = message


ENDS_ACCOUNTS_WORK = (LeaseLostError, AccountUnusableError, UnreachableError)
"""What no set, message or source is to blame for: nothing more can be done with this account at present."""

OWN_TROUBLE = (WorkerTroubleError, CommitUnknownError)
"""What befell the worker and not its work: nothing is booked for it, and it lasts no longer than itself."""
