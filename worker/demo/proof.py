"""What the loopback Telegram's ledger says: the judge that knows nothing of our database."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from worker.demo.stage import Stage
    from worker.sandbox.admin_client import SandboxAdmin


@dataclass(frozen=True, slots=True)
class Ledger:
    """Contents posted in the sources against message sets found at the destination."""

    unique_contents: int
    message_sets: int
    doubled: int
    lost: int


async def read_ledger(admin: SandboxAdmin, stage: Stage) -> Ledger:
    """Compare by the SHA-256 of the bytes that the server holds."""
    posted: set[str] = set()
    for channel in stage.sources:
        posted.update(_hashes(await admin.messages(channel)))
    published = Counter(_hashes(await admin.messages(stage.destination)))
    return Ledger(
        unique_contents=len(posted),
        message_sets=sum(published.values()),
        doubled=sum(count - 1 for count in published.values()),
        lost=len(posted - set(published)),
    )


def _hashes(messages: list[dict[str, Any]]) -> list[str]:
    return [message["sha256"] for message in messages if message["document_id"] and not message["deleted"]]
