"""Stubs whose metadata is still to come: listed through ranged reads, nothing is downloaded again.

The bytes are read where they were published. The source may be gone or closed by now; the destination is
ours, and what it holds is what the package promises.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from worker.archives.reader import JoinedReader, Part
from worker.domain.listing import Limits
from worker.domain.package_content import parts_by_file
from worker.errors import ENDS_ACCOUNTS_WORK, BusyError, SetFailedError
from worker.log import at_work, get_logger
from worker.pipeline.deduplicate import only_publisher
from worker.pipeline.index import NOT_THE_ARCHIVE, counted_try, index
from worker.recovery.restore import stored_document
from worker.store.metadata import Attempt, PendingPackage, begin_listing, note_failure, pending_of
from worker.store.package_content import content_of
from worker.telegram.remote_reader import RemoteReader

if TYPE_CHECKING:
    from worker.domain.package_content import PackageContent
    from worker.pipeline.deps import Deps

log = get_logger(__name__)
_MAX_ATTEMPTS = 5
# A long backlog must not keep an account from what was posted meanwhile.
_PER_ROUND = 100
# Reads cost network here: nothing is read only to be compared with a checksum, and slow is not broken.
_REMOTE = Limits(verify_bytes=0, wall_seconds=600.0)


async def complete_pending(deps: Deps) -> int:
    """List what this account can read; how many stubs were completed."""
    await deps.tries.settle()
    completed = 0
    for pending in await pending_of(deps.database, deps.account.id, limit=_PER_ROUND):
        try:
            # Two accounts that meet the same stub would read it twice.
            async with (
                only_publisher(deps, pending.content_hash),
                counted_try(deps, Attempt(pending.package_id)) as attempt,
            ):
                if not await begin_listing(deps.database, attempt, give_up_after=_MAX_ATTEMPTS):
                    log.warning("package.given_up", package=pending.package_id)
                    continue
                with at_work(f"listing of package {pending.package_id}"):
                    await _complete(deps, pending)
            completed += 1
        except ENDS_ACCOUNTS_WORK:
            raise
        except BusyError:
            continue
        except NOT_THE_ARCHIVE as error:
            log.warning("package.still_pending", package=pending.package_id, reason=str(error))
        except Exception as error:  # noqa: BLE001 - one hostile archive must not stop the account
            await _note(deps, pending, error)
    return completed


async def _note(deps: Deps, pending: PendingPackage, error: Exception) -> None:
    reason = (str(error) or repr(error)).splitlines()[0][:500]
    log.warning("package.not_indexed", package=pending.package_id, reason=reason)
    fleet = deps.settings.fleet
    await note_failure(
        deps.database,
        pending.package_id,
        reason,
        give_up_after=_MAX_ATTEMPTS,
        base_secs=fleet.retry_base_secs,
        cap_secs=fleet.retry_cap_secs,
    )


async def _complete(deps: Deps, pending: PendingPackage) -> None:
    content = await content_of(deps.database, pending.package_id)
    if not content.is_whole:
        raise SetFailedError(
            f"the parts of package {content.package_id} do not make up its files", remedy="run: worker verify"
        )
    await index(deps, content.package_id, await readers_of(deps, content), _REMOTE)


async def readers_of(deps: Deps, content: PackageContent) -> list[Part]:
    """The original files of a package, read by ranges from the destination."""
    return [
        Part(
            file.name,
            JoinedReader([RemoteReader(deps.gateway, await stored_document(deps, part)) for part in parts]),
        )
        for file, parts in parts_by_file(content)
    ]
