"""What a person wants done with an account: the same function, wherever the account is connected."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

if TYPE_CHECKING:
    from worker.pipeline.deps import Deps


class Counter(Protocol):
    """Whoever waits for an errand, as the errand sees them."""

    def progress(self, step: str, done: int, total: int) -> None:
        """It is so far."""
        ...

    async def deliver(self, data: bytes) -> None:
        """Hand over the next bytes; waits where they are not taken fast enough."""
        ...


@dataclass(frozen=True, slots=True)
class Errand:
    """One errand under way. Calls of ``deps`` go before those that nobody waits for."""

    deps: Deps
    arguments: Mapping[str, Any]
    counter: Counter
    secret: Callable[[], str]


Executor: TypeAlias = Callable[[Errand], Awaitable[dict[str, Any]]]
