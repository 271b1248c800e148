"""Sends under way: a repeat that arrives while the first still runs learns no more than that."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from worker.sandbox.faults import RpcFault

if TYPE_CHECKING:
    from collections.abc import Iterator


def _random_ids(query: Any) -> list[int]:
    named = getattr(query, "random_id", None)
    if isinstance(named, int):
        return [named]
    if isinstance(named, list):
        return list(named)
    return [single.random_id for single in getattr(query, "multi_media", ())]


class Progress:
    """The ``random_id`` of every send that has begun and is not answered yet, per account and peer."""

    def __init__(self) -> None:
        self._sending: set[tuple[int, bytes, int]] = set()

    @contextmanager
    def of(self, user_id: int | None, query: Any) -> Iterator[None]:
        """Hold a send's ids while it runs; queries that send nothing pass through."""
        ids = _random_ids(query)
        peer = getattr(query, "to_peer", None) or getattr(query, "peer", None)
        if user_id is None or peer is None or not ids:
            yield
            return
        keys = {(user_id, bytes(peer.write()), random_id) for random_id in ids}
        if keys & self._sending:
            raise RpcFault(500, "RANDOM_ID_DUPLICATE")
        self._sending |= keys
        try:
            yield
        finally:
            self._sending -= keys
