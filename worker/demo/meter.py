"""Counts the bytes that go over the wire, on their way to whoever shows them."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from worker.pipeline.deps import Watcher


class Meter:
    """A watcher that counts and passes everything on."""

    def __init__(self, watcher: Watcher) -> None:
        self._watcher = watcher
        self._seen: dict[tuple[str, str], int] = {}
        self.moved = 0

    def bytes_moved(self, set_name: str, step: str, done: int, total: int) -> None:
        # What is copied is on its way out like an upload, but goes over nobody's wire.
        way = "upload" if step == "copy" else step
        # Parts are under way side by side: one that is reported late is counted already.
        before = self._seen.get((set_name, way), 0)
        self.moved += max(0, done - before) if step != "copy" else 0
        self._seen[set_name, way] = max(done, before)
        self._watcher.bytes_moved(set_name, step, done, total)

    def set_ended(self, set_name: str, outcome: str) -> None:
        for step in ("fetch", "upload"):
            self._seen.pop((set_name, step), None)
        self._watcher.set_ended(set_name, outcome)

    def set_given_up(self, set_name: str, reason: str) -> None:
        self._watcher.set_given_up(set_name, reason)
