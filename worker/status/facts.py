"""What has to be known to say how the fleet stands, read from the database in one go."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from worker.domain.calls import Adaptation
from worker.store import overview, restrictions, roster
from worker.store.channels import channel_titles
from worker.store.destinations import full_destination
from worker.store.governor_store import active_blocks
from worker.store.lookouts import waiters
from worker.store.missing_packages import held_destinations
from worker.store.pauses import PauseStore
from worker.store.progress import SetUnderWay, sets_under_way
from worker.store.set_aside import SetAside, set_aside_by_channel
from worker.store.topic_cursors import unreadable_topics

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from worker.domain.calls import Block
    from worker.domain.pauses import Pause
    from worker.store.database import Database
    from worker.store.lookouts import Waiter
    from worker.store.missing_packages import HeldDestination
    from worker.store.topic_cursors import UnreadableTopic

WINDOW_MINUTES = 5


@dataclass(frozen=True, slots=True)
class Facts:
    """Rows, as they were found."""

    at: datetime
    accounts: Sequence[roster.RosterAccount]
    workers: Sequence[roster.RosterWorker]
    shut_out: Sequence[roster.ShutOut] = ()
    calls: Sequence[restrictions.MethodCalls] = ()
    failed_calls: int = 0
    blocks: Sequence[Block] = ()
    escalations: Sequence[restrictions.EscalationRow] = ()
    widened: Sequence[restrictions.WidenedPace] = ()
    scanned: overview.Scanned = field(default_factory=lambda: overview.Scanned(0, 0, 0))
    counts: dict[str, int] = field(default_factory=dict)
    under_way: Sequence[SetUnderWay] = ()
    held_back: Sequence[overview.WaitingSet] = ()
    held_back_count: int = 0
    given_up: Sequence[overview.WaitingSet] = ()
    set_aside: Sequence[SetAside] = ()
    unreadable: Sequence[UnreadableTopic] = ()
    held: Sequence[HeldDestination] = ()
    full: tuple[str, int] | None = None
    unsighted: Sequence[Waiter] = ()
    pauses: Sequence[Pause] = ()
    channel_titles: dict[int, str] = field(default_factory=dict)


async def read_facts(database: Database) -> Facts:
    """One question after the other: each is answered from an index or a small table."""
    pauses = await PauseStore(database).pauses()
    paused_channels = [pause.channel for pause in pauses if pause.channel is not None]
    return Facts(
        at=await roster.fleet_time(database),
        accounts=await roster.roster_accounts(database),
        workers=await roster.roster_workers(database),
        shut_out=await roster.shut_out_accounts(database),
        calls=await restrictions.calls_by_method(database, WINDOW_MINUTES),
        failed_calls=await restrictions.failed_calls(database, WINDOW_MINUTES),
        blocks=await active_blocks(database),
        escalations=await restrictions.recent_escalations(database),
        widened=await restrictions.widened_paces(database, Adaptation().half_life),
        scanned=await overview.scanned_sources(database),
        counts=await overview.count_sets(database),
        under_way=await sets_under_way(database),
        held_back=await overview.held_back_sets(database),
        held_back_count=await overview.count_held_back(database),
        given_up=await overview.given_up_sets(database),
        set_aside=await set_aside_by_channel(database),
        unreadable=await unreadable_topics(database),
        held=await held_destinations(database),
        full=await full_destination(database),
        unsighted=await waiters(database),
        pauses=pauses,
        channel_titles=await channel_titles(database, paused_channels) if paused_channels else {},
    )
