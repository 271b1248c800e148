"""The commands of the admin port, by name."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from worker.sandbox.ledger.rows import Account
    from worker.sandbox.server import Sandbox

    Command = Callable[..., Awaitable[Any]]

COMMANDS: dict[str, Command] = {}


def command(function: Command) -> Command:
    """Make a function callable by its name through the admin port."""
    COMMANDS[function.__name__] = function
    return function


def account_of(sandbox: Sandbox, phone: str) -> Account:
    account = sandbox.ledger.accounts.by_phone(phone)
    if account is None:
        raise ValueError(f"no account has the number {phone}")
    return account
