"""Which function answers which query."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from worker.sandbox.call import Call

    Function = Callable[[Call, Any], Awaitable[Any]]


@dataclass(frozen=True, slots=True)
class Handler:
    """A function and whether it may be called without being logged in."""

    function: Function
    needs_account: bool


_handlers: dict[type[Any], Handler] = {}


def handles(*queries: type[Any], needs_account: bool = True) -> Callable[[Function], Function]:
    """Register a function as the answer to these queries."""

    def register(function: Function) -> Function:
        for query in queries:
            _handlers[query] = Handler(function, needs_account)
        return function

    return register


def find(query: type[Any]) -> Handler | None:
    return _handlers.get(query)
