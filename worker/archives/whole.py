"""The one thing that proofs of completeness say no with."""

from __future__ import annotations


class NotWholeError(Exception):
    """The parts are not all there, or not all of one archive. ``missing`` holds indices of absent parts."""

    def __init__(self, reason: str, missing: tuple[int, ...] = ()) -> None:
        super().__init__(reason)
        self.missing = missing
