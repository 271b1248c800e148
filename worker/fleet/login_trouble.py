"""What can go wrong with a login, in words, with what a person can do next."""

from __future__ import annotations

from worker.errors import (
    OWN_TROUBLE,
    FleetError,
    LeaseLostError,
    NotBeforeError,
    RetryableError,
    UserError,
)

_MINUTE, _HOUR = 60, 3600
_WRONG = (
    "PHONE_CODE_INVALID",
    "PHONE_CODE_EMPTY",
    "PASSWORD_HASH_INVALID",
    "SRP_ID_INVALID",
    "SRP_PASSWORD_CHANGED",
)
_NEXT_STEPS = {
    "PHONE_CODE_INVALID": ("the code is wrong", "give the right one: worker accounts login {account}"),
    "PHONE_CODE_EMPTY": ("no code was given", "run: worker accounts login {account}"),
    "PHONE_CODE_EXPIRED": ("the code is too old", "have another one sent: worker accounts login {account}"),
    "PASSWORD_HASH_INVALID": (
        "the password is wrong",
        "give the right one: worker accounts login {account}; Telegram's apps can reset it",
    ),
    # Only if another login of the account comes between a question and its answer.
    "SRP_ID_INVALID": (
        "the password could not be checked",
        "give it once more: worker accounts login {account}",
    ),
    "SRP_PASSWORD_CHANGED": (
        "the account's password has just been changed",
        "give the present one: worker accounts login {account}",
    ),
    "PASSWORD_EMPTY": ("no password was given", "run: worker accounts login {account}"),
    "PHONE_NUMBER_INVALID": ("Telegram does not take this phone number", "check it, country code included"),
    "PHONE_NUMBER_UNOCCUPIED": (
        "no Telegram account has this number",
        "sign up with it in one of Telegram's apps first",
    ),
    "PHONE_NUMBER_BANNED": (
        "Telegram has banned this number",
        "use another account, or write to recover@telegram.org",
    ),
    "USER_DEACTIVATED": (
        "Telegram has closed this account",
        "use another account, or write to recover@telegram.org",
    ),
    "PHONE_NUMBER_FLOOD": (
        "Telegram wants no more logins of this number for now",
        "try again tomorrow: worker accounts login {account}",
    ),
    "PHONE_PASSWORD_FLOOD": (
        "Telegram wants no more passwords for this number for now",
        "try again tomorrow: worker accounts login {account}",
    ),
    "API_ID_PUBLISHED_FLOOD": (
        "Telegram takes no logins with this telegram.api_id any more, since too many people know it",
        "get one of your own at my.telegram.org",
    ),
    "UPDATE_APP_TO_LOGIN": (
        "Telegram wants a newer program for this login",
        "install the newest version of this one",
    ),
    "API_ID_INVALID": ("telegram.api_id and telegram.api_hash do not fit", "check both at my.telegram.org"),
}


def is_wrong(error: FleetError) -> bool:
    """Whether asking the person once more may help."""
    return any(text in error.what for text in _WRONG)


def is_expired(error: FleetError) -> bool:
    """Whether another code has to be sent."""
    return "PHONE_CODE_EXPIRED" in error.what


def explain(account_id: int, error: FleetError) -> FleetError:
    """The failure as a person can act on it."""
    if isinstance(error, OWN_TROUBLE):
        # Done or not: whoever repeats the command is told so, or goes on.
        return RetryableError(error.what, remedy="is PostgreSQL running? then run the same command again")
    if isinstance(error, RetryableError):
        # Whatever was half done is kept: repeating the command goes on with it.
        remedy = "check the network or the account's proxy, then run the same command again"
        return RetryableError(error.what, remedy=remedy)
    if isinstance(error, NotBeforeError):
        when = spoken(error.seconds)
        again = f"try again in {when}: worker accounts login {account_id}"
        return UserError("Telegram wants this number to wait", remedy=again)
    for text, (what, remedy) in _NEXT_STEPS.items():
        if text in error.what:
            return UserError(what, remedy=remedy.format(account=account_id))
    return UserError(error.what, remedy=f"begin anew: worker accounts login {account_id} --again")


def in_use(account_id: int) -> UserError:
    """Somebody owns the account that is to be logged in."""
    return UserError(
        f"account {account_id} is in use by a worker, or by another login",
        remedy=f"let that login end, or have the worker let go of it: worker accounts disable"
        f" {account_id}; then run: worker accounts login {account_id} --again",
    )


def interrupted(account_id: int, error: LeaseLostError) -> RetryableError:
    """The account was lost to the login, whose connection was cut; what it had begun is kept."""
    return RetryableError(
        f"the login of account {account_id} had to end: {error.what}",
        remedy=f"is PostgreSQL running? then go on with: worker accounts login {account_id}",
    )


def spoken(seconds: float) -> str:
    """A time to wait in the unit that fits it, rounded up."""
    for unit, name in ((_HOUR, "hours"), (_MINUTE, "minutes")):
        if seconds >= 2 * unit:
            return f"{-(-int(seconds) // unit)} {name}"
    return f"{max(1, int(seconds))} seconds"
