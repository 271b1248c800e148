"""The status as JSON. ``docs/status-json.md`` describes it; a test compares the two.

A field may be added without a new version. One that is renamed, removed or means something else raises it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from worker.status.model import CurrentSet, FleetStatus, RateLimits, Sync

SCHEMA_VERSION = 1


def to_document(status: FleetStatus) -> dict[str, Any]:
    """For ``worker status --json`` and whoever else wants it."""
    activity = status.activity
    return {
        "schema_version": SCHEMA_VERSION,
        "at": status.at.isoformat(timespec="seconds"),
        "accounts": [
            {
                "id": account.id,
                "name": account.name,
                "username": account.username,
                "phone": account.phone,
                "premium": account.premium,
                "state": account.state,
                "reason": account.reason,
                "worker": account.worker,
                "paused": account.paused,
            }
            for account in status.accounts
        ],
        "workers": [
            {
                "id": worker.id,
                "host": worker.host,
                "pid": worker.pid,
                "version": worker.version,
                "uptime_seconds": round(worker.uptime),
                "memory_bytes": worker.memory_bytes,
                "heartbeat_age_seconds": round(worker.heartbeat_age, 1),
                "silent": worker.silent,
                "accounts": worker.accounts,
            }
            for worker in status.workers
        ],
        "api_activity": {
            "window_minutes": activity.window_minutes,
            "total_calls": activity.total,
            "failed_calls": activity.failed,
            "by_method": activity.by_method,
        },
        "rate_limits": _rate_limits(status.rate_limits),
        "sync": _sync(status.sync),
    }


def _rate_limits(limits: RateLimits) -> dict[str, Any]:
    return {
        "restricted": limits.restricted,
        "active_waits": [
            {
                "account_id": wait.account_id,
                "account": wait.account,
                "method": wait.method,
                "chat": wait.chat or None,
                "wait_seconds": wait.wait_seconds,
                "clears_in_seconds": round(wait.clears_in, 1),
            }
            for wait in limits.active_waits
        ],
        "escalations": [
            {
                "account_id": item.account_id,
                "account": item.account,
                "method": item.method,
                "floods": item.floods,
                "extra_seconds": item.extra_seconds,
                "age_seconds": round(item.age),
            }
            for item in limits.escalations
        ],
        "slowed": [
            {
                "account_id": item.account_id,
                "account": item.account,
                "method": item.method,
                "factor": round(item.factor, 2),
            }
            for item in limits.slowed
        ],
    }


def _sync(sync: Sync) -> dict[str, Any]:
    return {
        "state": sync.state.value,
        "running": sync.state == "running",
        "paused": sync.state == "paused",
        "resumes_in_seconds": _seconds(sync.resumes_in),
        "completed": sync.channels_scanned,
        "total": sync.channels_total,
        "messages_synced": sync.messages_scanned,
        "sets": sync.sets,
        "sets_total": sync.sets_total,
        "sets_held_back": sync.held_back,
        "messages_set_aside": sync.messages_set_aside,
        "bytes_per_second": round(sync.bytes_per_second),
        "eta_seconds": _seconds(sync.eta),
        "current": [_current(item) for item in sync.current],
        "pauses": [
            {
                "what": pause.what,
                "account_id": pause.account_id,
                "channel_id": pause.channel_id,
                "by": pause.by,
                "resumes_in_seconds": _seconds(pause.resumes_in),
            }
            for pause in sync.pauses
        ],
        "waiting": [
            {
                "kind": item.kind,
                "what": item.what,
                "why": item.why,
                "resumes_in_seconds": _seconds(item.resumes_in),
            }
            for item in sync.waiting
        ],
    }


def _current(item: CurrentSet) -> dict[str, Any]:
    speed = item.bytes_per_second
    return {
        "set_id": item.set_id,
        "name": item.name,
        "channel": item.channel,
        "account_id": item.account_id,
        "account": item.account,
        "step": item.step,
        "done_bytes": item.done_bytes,
        "total_bytes": item.total_bytes,
        "bytes_per_second": None if speed is None else round(speed),
        "eta_seconds": _seconds(item.eta),
    }


def _seconds(span: float | None) -> float | None:
    return None if span is None else round(span, 1)
