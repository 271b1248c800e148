"""What stands between the gateway and its calls: somebody who says when each may start."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol, Self, TypeVar

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from types import TracebackType

R = TypeVar("R")


class FilePermission(Protocol):
    """Permission for the parts of one file; an async context around its transfer."""

    async def part(self, work: Callable[[], Awaitable[R]]) -> R:
        """Transfer one part when it is allowed, and again where that is what its failure asks for."""
        ...

    async def __aenter__(self) -> Self: ...

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...


class Permission(Protocol):
    """Permission for the calls of one account."""

    async def read(self, method: str, chat: int, work: Callable[[], Awaitable[R]]) -> R:
        """Make a call that may be repeated."""
        ...

    async def write(self, method: str, chat: int, work: Callable[[], Awaitable[R]]) -> R:
        """Make a call that must not be repeated by anybody but the caller."""
        ...

    def parts(self, method: str, narrow: Callable[[], None]) -> FilePermission:
        """For the parts of one file; ``narrow`` is called when fewer should be under way."""
        ...


def method_of(query: Any) -> str:
    """A call's name as Telegram's documentation spells it: ``messages.getHistory``."""
    *namespace, name = query.QUALNAME.removeprefix("functions.").split(".")
    return ".".join([*namespace, name[0].lower() + name[1:]])
