"""Whoever watches the demo."""

from __future__ import annotations

from typing import Protocol

from worker.pipeline.deps import Watcher


class Audience(Watcher, Protocol):
    """A watcher that also hears how far the whole is."""

    def act(self, what: str) -> None:
        """This is what happens from here on."""
        ...

    def standing(self, done: int, of: int, moved: int) -> None:
        """So many archives are dealt with, out of so many; so many bytes went over the wire."""
        ...

    def tell(self, what: str) -> None:
        """Something that a person should read, such as why nothing happens for a while."""
        ...
