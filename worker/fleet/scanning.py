"""One account's reading: what moved in the sources it can see, and the proof of what was found there."""

from __future__ import annotations

from typing import TYPE_CHECKING

from worker.domain.pauses import in_the_way, resting_channels
from worker.errors import (
    ENDS_ACCOUNTS_WORK,
    FenceLostError,
    FleetError,
    NoAccessError,
    NotBeforeError,
    RefusedError,
)
from worker.flow.gap import Gap
from worker.log import at_work, get_logger
from worker.pipeline.prove import prove_some
from worker.pipeline.scan import follow_changes, scan_page, verify_by_search
from worker.pipeline.sight import SightChangedError, is_outdated, look_how_far, require_all_seen
from worker.store import channels, cursors
from worker.store.accounts import save_me
from worker.store.memberships import lost_reading
from worker.store.rereading import all_read_again
from worker.store.source_files import sort_earlier
from worker.store.topic_cursors import keep_topics, read_others_first, settle_unreadable
from worker.telegram.dialogs import read_heads
from worker.telegram.reading import topics_moved_since

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from worker.domain.telegram import ChannelHead
    from worker.fleet.process import Process
    from worker.pipeline.deps import Deps
    from worker.store.cursors import Readable, Source

log = get_logger(__name__)
# A channel that an account was taken back into shows in its list of chats, and nowhere else.
_LIST_AGAIN_SECONDS = 600.0


async def scan_all(process: Process, deps: Deps, found: Callable[[], None]) -> bool:
    """Read what moved in every source, and ask the bytes of each set that looks complete.

    ``found`` is called when there may be something to claim. A wait that Telegram asks for here holds up
    nothing else: the next scan begins where this one stopped. False if something failed that another scan
    may read.
    """
    try:
        return await _scan_all(process, deps, found)
    except ENDS_ACCOUNTS_WORK:
        raise
    except FleetError as error:
        log.warning("scan.stopped", reason=str(error))
        return False


async def _scan_all(process: Process, deps: Deps, found: Callable[[], None]) -> bool:
    all_read = True
    await _prove_all(process, deps, found)
    sources = await _look_around(deps)
    heads = await read_heads(deps.gateway, [source.ref for source in sources])
    if any(is_outdated(deps, source) for source in sources):
        sources = await _ask_about(deps, [source for source in sources if is_outdated(deps, source)])
    between_channels = Gap(_delay(deps, deps.settings.rate_limits.inter_job_delay_ms), deps.clock)
    for source in sources:
        if source.ref.telegram_id not in heads:
            await _lose(deps, source, "it is not among the account's chats")
        elif (head := heads[source.ref.telegram_id]) is not None and source.has_moved(head):
            async with between_channels:
                all_read &= await _scan_source(process, deps, source, head)
            await _prove_all(process, deps, found)
    return all_read


async def _look_around(deps: Deps) -> list[Readable]:
    """The sources this account may read, once it is known how much of each it sees."""
    if await channels.seen_long_ago(deps.database, deps.account.id, _LIST_AGAIN_SECONDS):
        await _ask_how_it_stands(deps)
        await channels.record_seen(deps.database, deps.account.id, await deps.gateway.channels())
    sources = await cursors.readable_sources(deps.database, deps.account.id)
    unasked = [source for source in sources if source.visible_from is None]
    return await _ask_about(deps, unasked) if unasked else sources


async def _ask_about(deps: Deps, unasked: Sequence[Readable]) -> list[Readable]:
    for source in unasked:
        try:
            await look_how_far(deps, source.channel_id, source.ref)
        except NoAccessError as error:
            await _lose(deps, source, error.what)
        except NotBeforeError as error:
            # What is known is read all the same; the others wait for the next scan.
            log.info("scan.sight_not_asked", channel=source.title, reason=str(error))
            break
        except RefusedError as error:
            # One that cannot be asked about keeps no other from being read.
            log.warning("scan.sight_not_told", channel=source.title, reason=str(error))
    sources = await cursors.readable_sources(deps.database, deps.account.id)
    return [source for source in sources if source.visible_from is not None]


async def _ask_how_it_stands(deps: Deps) -> None:
    """Premium comes and goes while an account is connected, and with it the size of what it may send."""
    me = await deps.gateway.me()
    if me.is_premium != deps.standing.is_premium:
        log.warning("account.premium_changed", premium=me.is_premium)
        deps.standing.is_premium = me.is_premium
    await save_me(deps.database, deps.trust.tenure, me)


async def _lose(deps: Deps, source: Readable, reason: str) -> None:
    others = await lost_reading(deps.database, deps.account.id, source.channel_id)
    log.warning("channel.lost", channel=source.title, reason=reason, other_readers=others)


async def _scan_source(process: Process, deps: Deps, readable: Readable, head: ChannelHead) -> bool:
    """Read one source; false if that failed for a reason that may pass."""
    try:
        await sort_earlier(deps.database, readable.channel_id)
        hold_seconds = deps.settings.lease.lease_secs
        source = await cursors.hold(deps.database, deps.account.id, readable, head, hold_seconds)
        if source is None:
            log.debug("scan.shared", channel=readable.title)
            return True
        try:
            with at_work(f"reading of channel {readable.channel_id}"):
                await _read(process, deps, readable, source, head)
        except SightChangedError:
            # Others may see what this account does not; it asks how much it sees before it reads again.
            await cursors.release(deps.database, source)
            raise
        await cursors.release(deps.database, source)
    except FenceLostError as error:
        # Another account reads the same channel: its pages are as good as ours.
        log.info("scan.shared", reason=str(error))
    except ENDS_ACCOUNTS_WORK:
        raise
    except NoAccessError as error:
        await _lose(deps, readable, error.what)
    except FleetError as error:
        log.warning("scan.failed", channel=readable.title, reason=str(error))
        return False
    except Exception:
        log.exception("scan.broke", channel=readable.title)
        return False
    return True


async def _read(process: Process, deps: Deps, readable: Readable, source: Source, head: ChannelHead) -> None:
    """Changes first: a file that was replaced must not be claimed for what it was."""
    while source.pts < head.pts:
        if await _must_rest(process, deps, source):
            return
        before = source.pts
        source = await follow_changes(deps, source, is_forum=readable.is_forum)
        if source.pts <= before:
            break
    parts = [source]
    if readable.is_forum:
        topics = await topics_moved_since(deps.gateway, source.ref, source.last_message_id)
        parts = await keep_topics(deps.database, source, topics)
    for part in parts:
        if part.topic_id:
            goes_on = await _read_topic(process, deps, part)
        else:
            goes_on = await _read_up(process, deps, part)
        if not goes_on:
            return
    if readable.is_forum:
        if not parts and source.sees_all and head.top_message > source.last_message_id:
            # Something came up and no topic has moved: it was deleted, or is hidden from this account by now.
            await require_all_seen(deps, source)
        await cursors.finish(deps.database, source, head.top_message)


async def _read_topic(process: Process, deps: Deps, topic: Source) -> bool:
    """Like any source; but no topic stands in the way of those behind it."""
    try:
        return await _read_up(process, deps, topic)
    except RefusedError as error:
        await settle_unreadable(deps.database, topic, str(error))
        log.warning("topic.unreadable", topic=topic.title, reason=str(error))
        return True
    except (*ENDS_ACCOUNTS_WORK, NoAccessError, SightChangedError):
        raise
    except Exception:
        await read_others_first(deps.database, topic)
        raise


async def _read_up(process: Process, deps: Deps, source: Source) -> bool:
    """Page a channel or a topic to its newest message; false if something came in the way."""
    between_pages = Gap(_delay(deps, deps.settings.rate_limits.inter_batch_delay_ms), deps.clock)
    reached = source if source.newest_message_id > source.last_message_id else source.at_end()
    while not reached.is_read:
        if await _must_rest(process, deps, source):
            return False
        async with between_pages:
            reached = await scan_page(deps, reached)
    if not source.sees_all:
        await verify_by_search(deps, source, source.last_message_id)
    await cursors.finish(deps.database, source, reached.position)
    if reached.reread_at >= reached.reread_to:
        return True
    again = reached.again()
    while not again.is_read:
        if await _must_rest(process, deps, source):
            return False
        async with between_pages:
            again = await scan_page(deps, again, is_again=True)
    await all_read_again(deps.database, again)
    log.info("scan.read_again", channel=source.title, up_to=again.reread_to)
    return True


async def _must_rest(process: Process, deps: Deps, source: Source) -> bool:
    pauses = await process.pauses.pauses()
    resting = in_the_way(pauses, deps.account.id, source.channel_id) is not None
    return resting or process.stopping.is_set()


async def _prove_all(process: Process, deps: Deps, found: Callable[[], None]) -> None:
    """Prove what waits for it, until there is nothing more for this account or something is in the way."""
    while not process.stopping.is_set():
        pauses = await process.pauses.pauses()
        if in_the_way(pauses, deps.account.id, None) is not None:
            return
        if not await prove_some(deps, resting_channels(pauses, deps.account.id), found):
            return


def _delay(deps: Deps, milliseconds: int) -> float:
    return 0.0 if deps.settings.rate_limits.profile == "relaxed" else milliseconds / 1000
