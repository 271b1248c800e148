"""What the governor asks of the database, which remembers for all processes.

Contract. One round trip per operation; no connection is held between operations. All times are the
database's: what goes in and out is a number of seconds from its present. ``RetryableError`` means that it
cannot be reached at the moment.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Sequence

    from worker.domain.calls import (
        Activity,
        Adaptation,
        Admission,
        Block,
        Buckets,
        Call,
        FloodReport,
        PartCount,
        Verdict,
    )


class GovernorStore(Protocol):
    """The governor's memory, shared by all processes."""

    async def admit(self, call: Call, buckets: Buckets, adaptation: Adaptation) -> Admission:
        """Charge the call to its paces if no block and no pace stands against it; all of it or nothing."""
        ...

    async def record_flood(self, report: FloodReport) -> Verdict:
        """Block, escalate, widen and log in one step, and tell all processes. A block never gets shorter."""
        ...

    async def record_activity(self, rows: Sequence[Activity], counts: Sequence[PartCount]) -> None:
        """Write lines of the record and add counts to the present window."""
        ...

    async def active_blocks(self) -> Sequence[Block]:
        """The blocks in force."""
        ...
