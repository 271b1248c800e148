"""Requests: what a command asks of the worker that runs an account, and what comes back.

A row lives as long as somebody waits for it: the command renews ``awaited_at``, the worker ``worked_at``. Who
does not hear from the other in time gives up, so that neither waits for the dead. A secret is sealed, and
leaves the table in the moment in which it is taken.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sqlalchemy import text

if TYPE_CHECKING:
    from collections.abc import Mapping
    from uuid import UUID

    from worker.store.database import Database
    from worker.store.sealing import Sealer

REQUESTS = "fleet_requests"
"""New requests are announced here."""
# A command that was silent for so long waits no more.
AWAITED_SECONDS = 30.0


@dataclass(frozen=True, slots=True)
class Request:
    """What is asked. ``sealed`` is what came along in secret."""

    id: int
    kind: str
    account_id: int
    arguments: dict[str, Any]
    sealed: bytes | None

    def secret(self, sealer: Sealer) -> str:
        """What came along, readable."""
        assert self.sealed is not None, f"a request of kind {self.kind} carries no secret"
        return sealer.open(self.sealed, purpose=_purpose(self.kind)).decode()


@dataclass(frozen=True, slots=True)
class Standing:
    """How a request stands. ``silent`` is for how many seconds nothing was heard of whoever works on it."""

    state: str
    step: str
    done: int
    total: int
    result: dict[str, Any] | None
    reason: str | None
    silent: float


_ASK = text("""
    INSERT INTO requests (kind, account_id, arguments, secret, asked_by)
    VALUES (:kind, :account, CAST(:arguments AS jsonb), :secret, :by) RETURNING id
""")
# Relies on requests_live.
_TAKE = text("""
    WITH next AS (
        SELECT id, secret FROM requests WHERE account_id = :account AND state = 'queued'
          AND awaited_at > fleet_now() - :patience * interval '1 second'
        ORDER BY id LIMIT 1 FOR UPDATE SKIP LOCKED
    )
    UPDATE requests r SET state = 'running', secret = NULL, worker_id = :worker, worked_at = fleet_now()
    FROM next WHERE r.id = next.id RETURNING r.id, r.kind, r.account_id, r.arguments, next.secret
""")
_EXPIRE = text("""
    UPDATE requests SET state = 'cancelled', secret = NULL, ended_at = fleet_now(),
        reason = 'whoever asked for it went away'
    WHERE state IN ('queued', 'running') AND awaited_at <= fleet_now() - :patience * interval '1 second'
""")
_WORKED = text("""
    UPDATE requests SET step = :step, done = :done, total = :total, worked_at = fleet_now()
    WHERE id = :id AND state = 'running' AND worker_id = :worker
      AND awaited_at > fleet_now() - :patience * interval '1 second'
""")
_END = text("""
    UPDATE requests SET state = :state, result = CAST(:result AS jsonb), reason = :reason, secret = NULL,
        ended_at = fleet_now()
    WHERE id = :id AND state IN ('queued', 'running')
""")
_AWAIT = text("""
    UPDATE requests SET awaited_at = fleet_now() WHERE id = :id
    RETURNING state, step, done, total, result, reason,
        CAST(extract(epoch FROM fleet_now() - coalesce(worked_at, created_at)) AS double precision)
""")
_OLD = text("""
    DELETE FROM requests WHERE ended_at < fleet_now() - interval '1 day'
        OR (ended_at IS NULL AND awaited_at < fleet_now() - interval '1 day')
""")


def _purpose(kind: str) -> str:
    return f"request {kind}"


async def ask(
    database: Database,
    kind: str,
    account_id: int,
    arguments: Mapping[str, Any],
    *,
    asked_by: str = "",
    secret: str | None = None,
    sealer: Sealer | None = None,
) -> int:
    """Write down what is wanted, and let the account's worker know."""
    sealed = None
    if secret is not None:
        assert sealer is not None, "a secret is never written down readable"
        sealed = sealer.seal(secret.encode(), purpose=_purpose(kind))
    async with database.transaction("requests.ask") as connection:
        values = {
            "kind": kind,
            "account": account_id,
            "arguments": json.dumps(dict(arguments)),
            "secret": sealed,
            "by": asked_by,
        }
        request_id: int = (await connection.execute(_ASK, values)).scalar_one()
        await connection.execute(text("SELECT pg_notify(:channel, '')"), {"channel": REQUESTS})
        return request_id


async def take_next(
    database: Database, account_id: int, worker_id: UUID, *, expire: bool = True
) -> Request | None:
    """The next request to this account that somebody still waits for, with its secret; None if none is left.

    With ``expire``, requests of commands that died end here too, whatever their account.
    """
    async with database.transaction("requests.take") as connection:
        if expire:
            await connection.execute(_EXPIRE, {"patience": AWAITED_SECONDS})
        values = {"account": account_id, "worker": worker_id, "patience": AWAITED_SECONDS}
        row = (await connection.execute(_TAKE, values)).one_or_none()
        return None if row is None else Request(*row)


async def report_work(
    database: Database, request_id: int, worker_id: UUID, *, step: str, done: int, total: int
) -> bool:
    """Say how far it is; False if nobody waits for it any more."""
    async with database.transaction("requests.worked") as connection:
        values = {
            "id": request_id,
            "worker": worker_id,
            "step": step,
            "done": done,
            "total": total,
            "patience": AWAITED_SECONDS,
        }
        return bool((await connection.execute(_WORKED, values)).rowcount)


async def end_request(
    database: Database,
    request_id: int,
    state: str,
    *,
    result: Mapping[str, Any] | None = None,
    reason: str | None = None,
) -> None:
    """It is done, failed or cancelled; what ended before stays as it is."""
    async with database.transaction("requests.end") as connection:
        values = {
            "id": request_id,
            "state": state,
            "result": None if result is None else json.dumps(dict(result)),
            "reason": reason,
        }
        await connection.execute(_END, values)
        await connection.execute(text("SELECT pg_notify(:channel, '')"), {"channel": pipe_name(request_id)})


async def await_request(database: Database, request_id: int) -> Standing:
    """How it stands; whoever asks so is still waiting."""
    async with database.transaction("requests.await") as connection:
        return Standing(*(await connection.execute(_AWAIT, {"id": request_id})).one())


async def forget_old_requests(database: Database) -> int:
    """Remove requests that nobody will ask about again."""
    async with database.transaction("requests.forget") as connection:
        return (await connection.execute(_OLD)).rowcount


def pipe_name(request_id: int) -> str:
    """Where both ends of a request hear of bytes that were put or taken, and of its end."""
    return f"{REQUESTS}_{request_id}"
