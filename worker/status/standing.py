"""The fleet in one word, what does not move and why, and when it goes on. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from worker.plain_text import plain
from worker.status.model import SyncState, Waiting
from worker.status.wording import count_of, duration
from worker.store.destinations import CHOOSE_ANOTHER, full_reason

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from worker.domain.pauses import Pause
    from worker.status.facts import Facts
    from worker.status.model import AccountStatus, WorkerStatus
    from worker.store.overview import WaitingSet

_ACCOUNT_TROUBLE = {
    "new": "was never logged in",
    "awaiting_code": "waits for its login code",
    "awaiting_password": "waits for its password",
    "needs_login": "has to log in again",
    "disabled": "is disabled",
    "banned": "is banned by Telegram",
    "frozen": "is frozen by Telegram",
}


def sync_state(facts: Facts, accounts: Sequence[AccountStatus], workers: Sequence[WorkerStatus]) -> SyncState:
    """What the fleet as a whole is at."""
    if all(worker.silent for worker in workers):
        return SyncState.STOPPED
    at_work = [account for account in accounts if account.worker is not None]
    if any(_is_everything(pause) for pause in facts.pauses) or (
        at_work and all(account.paused for account in at_work)
    ):
        return SyncState.PAUSED
    if facts.under_way:
        return SyncState.RUNNING
    ready = facts.counts.get("ready", 0)
    if ready and _takes_nothing(facts):
        return SyncState.WAITING
    to_scan = facts.scanned.of_channels - facts.scanned.channels
    if ready > facts.held_back_count or to_scan:
        return SyncState.WAITING if facts.blocks else SyncState.RUNNING
    return SyncState.WAITING if ready else SyncState.IDLE


def resumes_in(facts: Facts, state: SyncState) -> float | None:
    """When something goes on by itself; None if nothing waits, or a person has to act first."""
    if state is SyncState.PAUSED:
        fleet_wide = [pause for pause in facts.pauses if _is_everything(pause)]
        ends = [pause.seconds_left for pause in fleet_wide or facts.pauses]
        return min((end for end in ends if end is not None), default=None)
    if state is SyncState.WAITING:
        if _takes_nothing(facts):
            return None
        blocks = [block.seconds_left for block in facts.blocks]
        sets = [item.seconds for item in facts.held_back]
        return min([*blocks, *sets], default=None)
    return None


def what_waits(
    facts: Facts, accounts: Sequence[AccountStatus], workers: Sequence[WorkerStatus]
) -> tuple[Waiting, ...]:
    """What does not move, and why. Pauses and rate limits have tables of their own."""
    return (
        *_waiting_workers(accounts, workers),
        *_waiting_accounts(facts, accounts, workers),
        *_shut_out_accounts(facts, accounts),
        *_unsighted_accounts(facts, accounts),
        *_closed_destinations(facts),
        *_unreadable_topics(facts),
        *_waiting_sets(facts),
        *_set_aside_messages(facts),
    )


def _waiting_workers(accounts: Sequence[AccountStatus], workers: Sequence[WorkerStatus]) -> Iterator[Waiting]:
    for worker in workers:
        if worker.silent:
            why = f"no heartbeat for {duration(worker.heartbeat_age)}"
            yield Waiting("worker", worker.label, why, None)
    if accounts and all(worker.silent for worker in workers):
        yield Waiting("worker", "the fleet", "no worker runs; start one: worker run", None)


def _waiting_accounts(
    facts: Facts, accounts: Sequence[AccountStatus], workers: Sequence[WorkerStatus]
) -> Iterator[Waiting]:
    begun = {account.id: account.begun for account in facts.accounts}
    anybody = any(not worker.silent for worker in workers)
    for account in accounts:
        if account.state != "ready":
            trouble = _ACCOUNT_TROUBLE.get(account.state, account.state)
            why = f"{trouble}: {account.reason}" if account.reason else trouble
            if account.state == "frozen":
                why += f" — appeal in one of Telegram's apps, then run: worker accounts enable {account.id}"
            if begun.get(account.id):
                uploads = count_of(begun[account.id], "upload")
                why += f"; it has begun {uploads}: another account that has the bytes goes on with that — "
                why += "to end one without: worker recover --give-up SET"
            yield Waiting("account", account.name, why, None)
        elif account.worker is None and anybody:
            yield Waiting("account", account.name, "no worker has taken it yet", None)


def _shut_out_accounts(facts: Facts, accounts: Sequence[AccountStatus]) -> Iterator[Waiting]:
    """An account that only reads is as it should be, unless it has begun to publish, or nobody else can."""
    names = {account.id: account.name for account in accounts if account.state == "ready"}
    nobody_posts = len({item.account_id for item in facts.shut_out if item.is_destination}) == len(names)
    for item in facts.shut_out:
        if not item.begun and not (item.is_destination and nobody_posts):
            continue
        why = f"may not post in {item.channel}"
        remedy = "make it an administrator there"
        if item.begun:
            why += f", where it has begun {count_of(item.begun, 'upload')}"
            remedy += f", or run: worker recover --take-over {item.account_id}"
        name = names.get(item.account_id, f"account {item.account_id}")
        yield Waiting("account", name, plain(f"{why} — {remedy}"), None)


def _unsighted_accounts(facts: Facts, accounts: Sequence[AccountStatus]) -> Iterator[Waiting]:
    names = {account.id: account.name for account in accounts}
    for item in facts.unsighted:
        name = names.get(item.account_id, f"account {item.account_id}")
        needs = "" if item.looker is not None else "needs you: "
        yield Waiting("account", name, plain(f"{needs}{item.reason} — {item.remedy}"), None)


def _closed_destinations(facts: Facts) -> Iterator[Waiting]:
    """Where nothing is published until a person has looked, or chosen another channel."""
    for item in facts.held:
        yield Waiting(
            "destination", plain(item.title), plain(f"needs you: {item.reason} — {item.remedy}"), None
        )
    if facts.full is not None:
        title, newest = facts.full
        why = f"needs you: {full_reason(title, newest)} — {CHOOSE_ANOTHER}"
        yield Waiting("destination", plain(title), plain(why), None)


def _unreadable_topics(facts: Facts) -> Iterator[Waiting]:
    for item in facts.unreadable:
        yield Waiting(
            "topic", plain(f"{item.title} in {item.channel}"), plain(f"cannot be read: {item.reason}"), None
        )


def _waiting_sets(facts: Facts) -> Iterator[Waiting]:
    for item in facts.held_back:
        yield Waiting("set", _where(item), plain(item.reason), item.seconds)
    for item in facts.given_up:
        yield Waiting("set", _where(item), plain(f"given up: {item.reason}"), None)


def _set_aside_messages(facts: Facts) -> Iterator[Waiting]:
    for item in facts.set_aside:
        what = f"{count_of(item.messages, 'message')} in {item.channel}"
        yield Waiting("message", plain(what), plain(f"cannot be kept, and left out: {item.reason}"), None)


def _where(item: WaitingSet) -> str:
    return plain(f"{item.name} in {item.channel}")


def _takes_nothing(facts: Facts) -> bool:
    """Whether the channel that archives go to waits for a person."""
    if facts.full is not None or any(item.is_chosen for item in facts.held):
        return True
    kept_out = {item.account_id for item in facts.shut_out if item.is_destination}
    kept_out |= {item.account_id for item in facts.unsighted if item.looker is None}
    at_work = {account.id for account in facts.accounts if account.state == "ready"}
    return bool(facts.unsighted) and at_work <= kept_out


def _is_everything(pause: Pause) -> bool:
    return pause.account is None and pause.channel is None
