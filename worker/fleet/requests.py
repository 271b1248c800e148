"""Doing what commands ask of the accounts that this process runs.

One request of an account at a time. What nobody waits for any more is cancelled; what this process cannot
finish is cancelled too, and the command that asked finds another way.
"""

from __future__ import annotations

import asyncio
import contextlib
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from worker.errors import OWN_TROUBLE, FleetError
from worker.fleet.bell import Bell
from worker.fleet.errands import EXECUTORS
from worker.log import bound, get_logger
from worker.recovery.errand import Errand
from worker.store import request_pipe, requests
from worker.store.notifications import listen

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from uuid import UUID

    from worker.clock import Clock
    from worker.fleet.process import Process
    from worker.pipeline.deps import Deps
    from worker.store.database import Database
    from worker.store.requests import Request

log = get_logger(__name__)
# Announcements may be missed; looking costs next to nothing.
_LOOK_SECONDS = 5.0
_REPORT_SECONDS = 1.0
STOPPED = "the worker stopped"


@contextlib.asynccontextmanager
async def serving_requests(process: Process, deps: Deps) -> AsyncIterator[None]:
    """Do what commands ask of this account, beside whatever else it does, for the length of the block."""
    server = asyncio.create_task(_serve(process, deps), name=f"requests to account {deps.account.id}")
    try:
        yield
    finally:
        server.cancel()
        await asyncio.gather(server, return_exceptions=True)


async def _serve(process: Process, deps: Deps) -> None:
    while True:
        rung = process.bell.next_ring()
        try:
            # A look leaves what others have forgotten as it found it.
            request = await requests.take_next(
                process.database, deps.account.id, process.worker_id, expire=deps.run_id is not None
            )
            if request is not None:
                await _execute(process, deps, request)
                continue
        except FleetError as error:
            log.warning("requests.unserved", reason=str(error))
        except Exception:
            # Whoever comes next must not wait in vain for what went wrong with one.
            log.exception("requests.broke")
        await rung.within(_LOOK_SECONDS)


async def _execute(process: Process, deps: Deps, request: Request) -> None:
    with bound(request=request.id):
        log.info("request.taken", kind=request.kind)
        state: str = "cancelled"
        result: dict[str, Any] | None = None
        reason: str | None = STOPPED
        try:
            result = await _attended(process, deps, request)
            state, reason = "done", None
        except _NobodyWaitsError as error:
            reason = str(error)
        except FleetError as error:
            state, reason = "failed", str(error)
        except Exception as error:
            log.exception("request.broke", kind=request.kind)
            state, reason = "failed", f"internal error: {error!r}"
        finally:
            await requests.end_request(process.database, request.id, state, result=result, reason=reason)
            log.info("request.ended", kind=request.kind, state=state, reason=reason)


class _NobodyWaitsError(FleetError):
    """The command that asked has ended."""


async def _attended(process: Process, deps: Deps, request: Request) -> dict[str, Any]:
    """Run the request's executor for as long as somebody waits for it."""
    executor = EXECUTORS.get(request.kind)
    if executor is None:
        raise FleetError(f"this worker cannot do {request.kind!r}", remedy="upgrade it")
    async with _open_counter(process.database, request, process.worker_id, process.clock) as counter:
        errand = Errand(
            urgent(process, deps), request.arguments, counter, lambda: request.secret(process.sealer)
        )
        job = asyncio.ensure_future(executor(errand))
        try:
            while not job.done():
                if not await counter.report():
                    raise _NobodyWaitsError("whoever asked for it went away")
                await asyncio.wait({job}, timeout=_REPORT_SECONDS)
            await counter.report()
            return job.result()
        finally:
            job.cancel()
            await asyncio.gather(job, return_exceptions=True)


def urgent(process: Process, deps: Deps) -> Deps:
    """The same account, with calls that a person waits for."""
    account = deps.account
    permission = process.governance.permission(account.id, deps.standing, urgent=True)
    return replace(deps, gateway=deps.gateway.under(permission))


class _PipeCounter:
    """Progress and bytes for a command in another process."""

    def __init__(self, database: Database, request_id: int, worker_id: UUID, bell: Bell) -> None:
        self._database = database
        self._request_id = request_id
        self._worker_id = worker_id
        self._bell = bell
        self._standing = ("", 0, 0)
        self._next = 0

    def progress(self, step: str, done: int, total: int) -> None:
        self._standing = (step, done, total)

    async def deliver(self, data: bytes) -> None:
        while True:
            rung = self._bell.next_ring()
            if await request_pipe.has_room(self._database, self._request_id):
                break
            await rung.within(_REPORT_SECONDS)
        await request_pipe.put_chunk(self._database, self._request_id, self._next, data)
        self._next += 1

    async def report(self) -> bool:
        """Write down how far it is; False if nobody waits any more. An outage is no reason to give up."""
        step, done, total = self._standing
        try:
            return await requests.report_work(
                self._database, self._request_id, self._worker_id, step=step, done=done, total=total
            )
        except OWN_TROUBLE as error:
            log.warning("request.not_reported", reason=str(error))
            return True


@contextlib.asynccontextmanager
async def _open_counter(
    database: Database, request: Request, worker_id: UUID, clock: Clock
) -> AsyncIterator[_PipeCounter]:
    bell = Bell()
    name = requests.pipe_name(request.id)
    listening = asyncio.create_task(listen(database.address, name, lambda _: bell.ring(), clock))
    try:
        yield _PipeCounter(database, request.id, worker_id, bell)
    finally:
        listening.cancel()
        await asyncio.gather(listening, return_exceptions=True)
