"""From rows to what they mean. Pure: the same facts always give the same answer."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from worker.domain.pauses import in_the_way
from worker.domain.phone import masked_phone
from worker.plain_text import plain
from worker.status.facts import WINDOW_MINUTES, Facts
from worker.status.model import (
    AccountStatus,
    ActiveWait,
    ApiActivity,
    CurrentSet,
    EscalationStatus,
    FleetStatus,
    PauseStatus,
    RateLimits,
    SlowedMethod,
    Sync,
    WorkerStatus,
)
from worker.status.standing import resumes_in, sync_state, what_waits

if TYPE_CHECKING:
    from worker.domain.pauses import Pause
    from worker.store.progress import SetUnderWay
    from worker.store.roster import RosterAccount


def compose(facts: Facts, *, silent_after: float) -> FleetStatus:
    """How the fleet stands; a worker is silent when its heartbeat is ``silent_after`` seconds old."""
    names = {account.id: _name_of(account) for account in facts.accounts}
    workers = _workers(facts, silent_after)
    accounts = _accounts(facts, {worker.id: worker.label for worker in workers})
    return FleetStatus(
        at=facts.at,
        accounts=accounts,
        workers=workers,
        activity=ApiActivity(
            window_minutes=WINDOW_MINUTES,
            by_method={row.method: row.calls for row in facts.calls},
            failed=facts.failed_calls,
        ),
        rate_limits=_rate_limits(facts, names),
        sync=_sync(facts, names, accounts, workers),
    )


def _name_of(account: RosterAccount) -> str:
    return plain(account.display_name or account.username or f"account {account.id}")


def _named(names: dict[int, str], account_id: int) -> str:
    return names.get(account_id, f"account {account_id}")


def _workers(facts: Facts, silent_after: float) -> tuple[WorkerStatus, ...]:
    running = Counter(account.worker_id for account in facts.accounts)
    return tuple(
        WorkerStatus(
            id=str(worker.id),
            host=worker.host,
            pid=worker.pid,
            version=worker.version,
            uptime=worker.uptime,
            memory_bytes=worker.memory_bytes,
            heartbeat_age=worker.heartbeat_age,
            silent=worker.heartbeat_age > silent_after,
            accounts=running[worker.id],
        )
        for worker in facts.workers
    )


def _accounts(facts: Facts, labels: dict[str, str]) -> tuple[AccountStatus, ...]:
    return tuple(
        AccountStatus(
            id=account.id,
            name=_name_of(account),
            username=account.username,
            phone=masked_phone(account.phone),
            premium=account.is_premium,
            state=account.state,
            reason=None if account.state_reason is None else plain(account.state_reason),
            worker=None if account.worker_id is None else labels.get(str(account.worker_id)),
            paused=in_the_way(facts.pauses, account.id, None) is not None,
        )
        for account in facts.accounts
    )


def _rate_limits(facts: Facts, names: dict[int, str]) -> RateLimits:
    return RateLimits(
        active_waits=tuple(
            ActiveWait(
                account=_named(names, block.account),
                account_id=block.account,
                method=block.method,
                chat=block.chat,
                wait_seconds=block.wait,
                clears_in=block.seconds_left,
            )
            for block in facts.blocks
        ),
        escalations=tuple(
            EscalationStatus(
                account=_named(names, row.account),
                account_id=row.account,
                method=row.method,
                floods=row.floods,
                extra_seconds=row.extra_seconds,
                age=row.age,
            )
            for row in facts.escalations
        ),
        slowed=tuple(
            SlowedMethod(_named(names, row.account), row.account, row.method, row.factor)
            for row in facts.widened
        ),
    )


def _sync(
    facts: Facts,
    names: dict[int, str],
    accounts: tuple[AccountStatus, ...],
    workers: tuple[WorkerStatus, ...],
) -> Sync:
    state = sync_state(facts, accounts, workers)
    return Sync(
        state=state,
        channels_scanned=facts.scanned.channels,
        channels_total=facts.scanned.of_channels,
        messages_scanned=facts.scanned.messages,
        sets=dict(facts.counts),
        held_back=facts.held_back_count,
        messages_set_aside=sum(item.messages for item in facts.set_aside),
        current=tuple(_current(item, names) for item in facts.under_way),
        pauses=tuple(_pause(pause, names, facts.channel_titles) for pause in facts.pauses),
        waiting=what_waits(facts, accounts, workers),
        resumes_in=resumes_in(facts, state),
    )


def _current(item: SetUnderWay, names: dict[int, str]) -> CurrentSet:
    # Measured up to this moment, not to the last byte: a transfer that stands still gets slower to look at.
    speed = item.moved / item.seconds if item.moved and item.seconds > 0 else None
    return CurrentSet(
        set_id=item.set_id,
        name=plain(item.name),
        channel=plain(item.channel),
        account=_named(names, item.account),
        account_id=item.account,
        step=item.step or "start",
        done_bytes=item.done,
        total_bytes=item.total,
        bytes_per_second=speed,
        eta=max(0, item.total - item.done) / speed if speed else None,
    )


def _pause(pause: Pause, names: dict[int, str], titles: dict[int, str]) -> PauseStatus:
    account = None if pause.account is None else _named(names, pause.account)
    channel = None if pause.channel is None else titles.get(pause.channel, f"channel {pause.channel}")
    what = (
        "everything" if account is None and channel is None else " in ".join(filter(None, [account, channel]))
    )
    return PauseStatus(plain(what), pause.account, pause.channel, pause.by, pause.seconds_left)
