"""Stubs whose metadata is still to come: listed through ranged reads, nothing is downloaded again."""

from __future__ import annotations

from typing import TYPE_CHECKING

from worker.archives.reader import Part
from worker.errors import LeaseLostError
from worker.log import get_logger
from worker.pipeline.index import index
from worker.store.channels import channel_ref
from worker.store.packages import PendingPackage, note_failure, pending_of
from worker.store.sets import parts_of
from worker.telegram.remote_reader import RemoteReader

if TYPE_CHECKING:
    from worker.pipeline.deps import Deps

log = get_logger(__name__)
_MAX_ATTEMPTS = 5


async def complete_pending(deps: Deps) -> int:
    """List what this account can read; how many stubs were completed."""
    completed = 0
    for pending in await pending_of(deps.database, deps.account.id):
        try:
            await _complete(deps, pending)
            completed += 1
        except LeaseLostError:
            raise
        except Exception as error:  # noqa: BLE001 - one hostile archive must not stop the account
            reason = str(error).splitlines()[0][:500] or repr(error)
            log.warning("package.still_pending", package=pending.package_id, reason=reason)
            await note_failure(deps.database, pending.package_id, reason, give_up_after=_MAX_ATTEMPTS)
    return completed


async def _complete(deps: Deps, pending: PendingPackage) -> None:
    channel = await channel_ref(deps.database, deps.account.id, pending.channel_id)
    parts = []
    for part in await parts_of(deps.database, pending.set_id):
        document = await deps.gateway.document(channel, part.message_id, part.document_id)
        parts.append(Part(part.file_name, RemoteReader(deps.gateway, document)))
    await index(deps, pending.package_id, parts)
