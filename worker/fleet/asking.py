"""Getting an errand done: with an account that nobody runs, else by the worker that runs one.

The command waits either way. If the worker it asked falls silent, it asks again; when the command itself is
stopped, so is what it asked for.
"""

from __future__ import annotations

import asyncio
import contextlib
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from worker.errors import OWN_TROUBLE, AccountUnusableError, FleetError, RetryableError, UserError
from worker.fleet.bell import Bell
from worker.fleet.connection import connected
from worker.fleet.errands import EXECUTORS
from worker.fleet.requests import serving_requests, urgent
from worker.log import get_logger
from worker.recovery.errand import Counter, Errand
from worker.recovery.sight import PartialSightError
from worker.store import accounts, request_pipe, requests, workers
from worker.store.notifications import listen
from worker.store.readers import Reader, readers_of_channels

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping, Sequence

    from worker.clock import Clock
    from worker.fleet.lease import Lease
    from worker.fleet.process import Process
    from worker.store.accounts import Account
    from worker.store.requests import Standing

R = TypeVar("R")
log = get_logger(__name__)
_TRIES = 5
_AGAIN_SECONDS = 1.0
_LOOK_SECONDS = 0.5
# A worker says every second how far it is, and looks for requests every five.
_SILENT_SECONDS = 15.0


@dataclass(frozen=True, slots=True)
class Wish:
    """What to do with some account that reads ``channels``. Asked for its arguments anew at every try.

    ``whole``: it concludes from what is not there, so the account has to see all that is. ``dry``: nothing is
    to be changed by it, so nothing is kept of the account's visit either.
    """

    kind: str
    channels: Sequence[int]
    arguments: Callable[[], Mapping[str, Any]]
    asked_by: str = ""
    secret: str | None = None
    whole: bool = False
    dry: bool = False


class _LostError(FleetError):
    """Whoever worked on the request is gone."""


async def fulfil(
    process: Process, wish: Wish, counter: Counter, *, account_id: int | None = None
) -> dict[str, Any]:
    """Have the errand done, by this account if one is named, and return its result."""
    reason = ""
    for _ in range(_TRIES):
        look = partial(readers_of_channels, process.database, wish.channels, whole=wish.whole)
        readers = await _outlasting(process.clock, look)
        able = [reader for reader in readers if account_id in (None, reader.account.id)]
        if not able:
            raise await _nobody(process, wish)
        try:
            return await _by_somebody(process, able, wish, counter)
        except PartialSightError as error:
            # It is written down: the next choice is among the others.
            log.info("errand.left_to_others", kind=wish.kind, reason=error.what)
            reason = error.what
        except _LostError as error:
            reason = error.what
            log.info("errand.tried_again", kind=wish.kind, reason=reason)
            await process.clock.sleep(_AGAIN_SECONDS)
    raise RetryableError(reason, remedy="run the command again, and look at: worker status")


async def _nobody(process: Process, wish: Wish) -> UserError:
    if wish.whole and await readers_of_channels(process.database, wish.channels):
        return UserError(
            "no account that is logged in sees all of its messages",
            remedy="let new members of the group see its history, or log in an account that does",
        )
    return UserError(
        "no account that is logged in can read where this lies",
        remedy="see: worker accounts list; then join that channel with one",
    )


async def _by_somebody(
    process: Process, able: Sequence[Reader], wish: Wish, counter: Counter
) -> dict[str, Any]:
    for reader in able:
        if reader.host is not None:
            return await _there(process, reader, wish, counter)
        done = await _here(process, reader.account, wish, counter)
        if done is not None:
            return done
    raise _LostError("every account that could do this is in use elsewhere, or needs login")


async def _here(process: Process, account: Account, wish: Wish, counter: Counter) -> dict[str, Any] | None:
    """Lease the account and do it in this process; None if the account cannot be had."""
    async with process.lease(account.id) as lease:
        if lease is None:
            return None
        try:
            if wish.dry:
                return await _connect_and_do(process, account, lease, None, wish, counter)
            return await _run(process, account, lease, wish, counter)
        except AccountUnusableError as error:
            if not wish.dry:
                await accounts.mark_unusable(process.database, lease.tenure, error.state, error.what)
            return None


async def _run(
    process: Process, account: Account, lease: Lease, wish: Wish, counter: Counter
) -> dict[str, Any]:
    run_id = await workers.start_run(process.database, process.worker_id, account.id, is_errand=True)
    outcome, reason = "stopped", None
    try:
        result = await _connect_and_do(process, account, lease, run_id, wish, counter)
        outcome = "finished"
    except FleetError as error:
        outcome, reason = "failed", str(error)
        raise
    finally:
        await workers.end_run(process.database, run_id, outcome, reason)
    return result


async def _connect_and_do(
    process: Process, account: Account, lease: Lease, run_id: int | None, wish: Wish, counter: Counter
) -> dict[str, Any]:
    async with connected(process, account, lease, run_id) as deps, serving_requests(process, deps):
        errand = Errand(urgent(process, deps), wish.arguments(), counter, lambda: wish.secret or "")
        return await EXECUTORS[wish.kind](errand)


async def _there(process: Process, reader: Reader, wish: Wish, counter: Counter) -> dict[str, Any]:
    """Ask the worker that runs the account, and wait for what comes back."""
    ask = partial(
        requests.ask,
        process.database,
        wish.kind,
        reader.account.id,
        wish.arguments(),
        asked_by=wish.asked_by,
        secret=wish.secret,
        sealer=process.sealer,
    )
    request_id = await _outlasting(process.clock, ask)
    counter.progress(f"asking the worker on {reader.host}", 0, 0)
    bell = Bell()
    name = requests.pipe_name(request_id)
    listening = asyncio.create_task(
        listen(process.database.address, name, lambda _: bell.ring(), process.clock)
    )
    try:
        return await _wait(process, request_id, bell, counter)
    finally:
        listening.cancel()
        await asyncio.gather(listening, return_exceptions=True)
        # A request that has ended stays as it is; any other is not awaited any more.
        with contextlib.suppress(*OWN_TROUBLE):
            await requests.end_request(
                process.database, request_id, "cancelled", reason="whoever asked for it stopped waiting"
            )


async def _wait(process: Process, request_id: int, bell: Bell, counter: Counter) -> dict[str, Any]:
    expected = 0
    while True:
        rung = bell.next_ring()
        # In this order: whatever was put in before the end is found after it.
        standing = await _outlasting(
            process.clock, partial(requests.await_request, process.database, request_id)
        )
        # Bytes that were taken out by a commit without an answer are missed below.
        take = partial(request_pipe.take_chunks, process.database, request_id)
        for ordinal, data in await _outlasting(process.clock, take):
            if ordinal != expected:
                raise _LostError("bytes were lost between the worker and this command")
            expected += 1
            await counter.deliver(data)
        _raise_unless_alive(standing)
        if standing.state == "done":
            return standing.result or {}
        if standing.state == "running":
            counter.progress(standing.step, standing.done, standing.total)
        await rung.within(_LOOK_SECONDS)


async def _outlasting(clock: Clock, question: Callable[[], Awaitable[R]]) -> R:
    """The database's answer. One that is away for a moment ends no command; no request outlasts more."""
    given_up_at = clock.monotonic() + requests.AWAITED_SECONDS
    while True:
        try:
            return await question()
        except OWN_TROUBLE as error:
            if clock.monotonic() >= given_up_at:
                raise
            log.info("errand.waits_for_database", reason=str(error))
            await clock.sleep(_AGAIN_SECONDS)


def _raise_unless_alive(standing: Standing) -> None:
    if standing.state == "failed":
        raise FleetError(standing.reason or "the worker could not do it")
    if standing.state == "cancelled":
        raise _LostError(standing.reason or "the worker stopped")
    if standing.state in ("queued", "running") and standing.silent > _SILENT_SECONDS:
        raise _LostError("the worker that runs the account does not answer")
