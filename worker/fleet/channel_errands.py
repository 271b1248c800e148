"""What commands about channels need an account's connection for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from worker.store.channels import record_joined, record_seen
from worker.telegram.joining import join_invited, join_public

if TYPE_CHECKING:
    from worker.recovery.errand import Errand


async def discover(errand: Errand) -> dict[str, Any]:
    """Read the account's list of chats and keep the channels among them."""
    deps = errand.deps
    found = await deps.gateway.channels()
    await record_seen(deps.database, deps.account.id, found)
    return {"channels": len(found)}


async def join(errand: Errand) -> dict[str, Any]:
    """Make the account a member of a channel. An invitation is worth something: it comes as the secret."""
    deps = errand.deps
    username = errand.arguments.get("username")
    info = (
        await join_public(deps.gateway, username)
        if username
        else await join_invited(deps.gateway, errand.secret())
    )
    await record_joined(deps.database, deps.account.id, info)
    return {"telegram_id": info.ref.telegram_id, "title": info.title}
