"""What the loopback Telegram's ledger says: the judge that knows nothing of our database."""

from __future__ import annotations

import hashlib
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from worker.domain.marker import find_marker

if TYPE_CHECKING:
    from worker.demo.stage import Stage
    from worker.sandbox.admin_client import SandboxAdmin


@dataclass(frozen=True, slots=True)
class Ledger:
    """Contents that belong at the destination against the messages that are there."""

    unique_contents: int
    message_sets: int
    doubled: int
    lost: int
    unexpected: int


async def read_ledger(admin: SandboxAdmin, stage: Stage) -> Ledger:
    """Cut every archive as the markers say, and look for the SHA-256 of each cut among the server's own."""
    there = [m for m in await admin.messages(stage.destination) if m["document_id"] and not m["deleted"]]
    contents = [b"".join(file.read_bytes() for file in sample.files) for sample in stage.publishable]
    whole = {hashlib.sha256(content).digest(): content for content in contents}
    windows: Counter[tuple[bytes, int, int]] = Counter()
    unexpected = 0
    for message in there:
        window = _window(message, whole)
        if window is None:
            unexpected += 1
        else:
            windows[window] += 1
    found = sum(_tiles(windows, digest, len(content)) for digest, content in whole.items())
    return Ledger(
        unique_contents=len(whole),
        message_sets=found,
        doubled=sum(windows.values()) - len(windows),
        lost=len(whole) - found,
        unexpected=unexpected,
    )


def _window(message: dict[str, Any], whole: dict[bytes, bytes]) -> tuple[bytes, int, int] | None:
    marker = find_marker(message["text"])
    if marker is None or marker.content_hash not in whole:
        return None
    cut = whole[marker.content_hash][marker.offset : marker.offset + marker.length]
    if hashlib.sha256(cut).hexdigest() != message["sha256"]:
        return None
    return marker.content_hash, marker.offset, marker.length


def _tiles(windows: Counter[tuple[bytes, int, int]], digest: bytes, size: int) -> bool:
    """Whether the windows of this content cover it from end to end."""
    reached = 0
    for _, offset, length in sorted(window for window in windows if window[0] == digest):
        if offset != reached:
            return False
        reached += length
    return reached == size
