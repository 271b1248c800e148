"""How far each source was read, and who reads it.

A channel has one cursor that its readers share; an account that does not see the whole history has one of its
own, since it cannot vouch for what it does not see. The row of topic 0 is the channel's: whoever holds it
reads the channel, and in a forum the topics too. It says up to where every topic was read.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from sqlalchemy import text

from worker.domain.telegram import ChannelRef
from worker.errors import FenceLostError
from worker.store.ended_topics import end_topics
from worker.store.visibility import ASKED

if TYPE_CHECKING:
    from sqlalchemy.ext.asyncio import AsyncConnection

    from worker.domain.telegram import ChannelHead
    from worker.store.database import Database

# Messages are edited late, and now and then one appears below others that were read before it.
READ_AGAIN = 100


@dataclass(frozen=True, slots=True)
class Readable:
    """A source that an account may read. ``visible_from`` is the first message it sees; None: not asked.

    ``member_since`` is the membership that this was asked for; broadcast channels show everything to any.
    """

    channel_id: int
    ref: ChannelRef
    title: str
    kind: str
    visible_from: int | None
    last_message_id: int
    pts: int
    is_unfinished: bool
    member_since: int | None = None

    @property
    def is_forum(self) -> bool:
        return self.kind == "forum"

    def has_moved(self, head: ChannelHead) -> bool:
        """Whether anything happened since it was read, or it was not read to its end."""
        return self.is_unfinished or head.top_message > self.last_message_id or head.pts > self.pts


@dataclass(frozen=True, slots=True)
class Source:
    """A channel or topic that this account is reading: its cursor, and how far up it has to go.

    What lies between ``reread_at`` and ``reread_to`` is read once more: changes of it went unheard.
    ``can_hide``: messages may be hidden from one member and not from others. ``asked`` is shared by the
    topics of one reading: it holds the channel once Telegram was asked whether they are.
    """

    account_id: int
    channel_id: int
    cursor_id: int
    held_id: int
    topic_id: int
    ref: ChannelRef
    title: str
    last_message_id: int
    newest_message_id: int
    pts: int
    position: int
    sees_all: bool
    member_since: int | None
    hold_seconds: float
    reread_at: int = 0
    reread_to: int = 0
    can_hide: bool = False
    asked: set[int] = field(default_factory=set, compare=False)

    @property
    def is_read(self) -> bool:
        """Whether nothing is left between where reading stands and the newest message."""
        return self.position >= self.newest_message_id

    def moved_to(self, message_id: int) -> Source:
        """The same source, read up to this message."""
        last = max(self.last_message_id, message_id)
        return replace(self, position=message_id, last_message_id=last)

    def again(self) -> Source:
        """The same source where it has to be read once more."""
        last = max(self.last_message_id, self.position)
        return replace(self, last_message_id=last, position=self.reread_at, newest_message_id=self.reread_to)

    def at_end(self) -> Source:
        """The same source when there is nothing above where reading stands."""
        return replace(self, position=max(self.position, self.newest_message_id))


# SQL: whether the cursor ``t`` has something left to read. A topic that was refused is tried again later.
_AGAIN_HOURS = 6
TO_READ = f"""((t.last_message_id < t.newest_message_id OR t.reread_at < t.reread_to)
    AND (t.unreadable IS NULL
         OR t.scanned_at NOT BETWEEN fleet_now() - interval '{_AGAIN_HOURS} hours' AND fleet_now()))"""
# SQL: whether the cursor is of a topic that was not read while the channel ``c`` was a forum.
_LEFT_OF_TOPIC = "(c.kind = 'supergroup' AND t.topic_id > 0 AND t.last_message_id < t.newest_message_id)"
_OWNER = "CASE WHEN m.visible_from > 0 THEN m.account_id END"
_READABLE = text(f"""
    SELECT c.id, c.telegram_id, p.access_hash, c.title, c.kind, m.member_since,
        CASE WHEN {ASKED} THEN m.visible_from END AS visible_from,
        coalesce(cu.last_message_id, 0) AS last, coalesce(cu.pts, 0) AS pts,
        cu.id IS NULL OR EXISTS (
            SELECT FROM scan_cursors t WHERE t.channel_id = c.id AND ({TO_READ} OR {_LEFT_OF_TOPIC})
              AND t.account_id IS NOT DISTINCT FROM {_OWNER}) AS is_unfinished
    FROM channels c
    JOIN memberships m ON m.channel_id = c.id AND m.account_id = :account AND m.can_read
    JOIN peers p ON p.account_id = m.account_id AND p.telegram_id = c.telegram_id
    LEFT JOIN scan_cursors cu ON cu.channel_id = c.id AND cu.topic_id = 0
        AND cu.account_id IS NOT DISTINCT FROM {_OWNER}
    WHERE c.is_source AND c.is_enabled
    ORDER BY cu.scanned_at NULLS FIRST, c.id
""")
# Free, ours, or left by somebody who has not been heard of since. A hold that seems to last longer than any
# was given before a clock stepped back; two accounts that read one channel at once do no harm.
_HOLD = text("""
    INSERT INTO scan_cursors AS cu (channel_id, account_id, newest_message_id, pts, held_by, held_until)
    VALUES (:channel, :owner, :top, :pts, :account, fleet_now() + :hold * interval '1 second')
    ON CONFLICT ON CONSTRAINT scan_cursors_source_key DO UPDATE SET held_by = excluded.held_by,
        held_until = excluded.held_until, newest_message_id = greatest(cu.last_message_id, :top),
        pts = CASE WHEN cu.pts = 0 THEN excluded.pts ELSE cu.pts END
    WHERE cu.held_by IS NULL OR cu.held_by = :account
       OR cu.held_until NOT BETWEEN fleet_now() AND fleet_now() + :hold * interval '1 second'
    RETURNING cu.id, cu.last_message_id, cu.newest_message_id, cu.pts, cu.reread_at, cu.reread_to
""")
# What is read counts for as much as the account sees, and for as long as that is known.
_KEEP_HOLD = text(f"""
    UPDATE scan_cursors cu SET held_until = fleet_now() + :hold * interval '1 second'
    FROM memberships m JOIN channels c ON c.id = m.channel_id
    WHERE cu.id = :held AND cu.held_by = :account AND m.account_id = :account AND m.channel_id = cu.channel_id
      AND {ASKED} AND (m.visible_from = 0) = :sees_all AND m.member_since IS NOT DISTINCT FROM :since
""")
_ADVANCE = text("""
    UPDATE scan_cursors SET last_message_id = :to, messages_seen = messages_seen + :seen,
        newest_message_id = greatest(newest_message_id, :to), scanned_at = fleet_now()
    WHERE id = :cursor AND last_message_id = :from
""")
_FINISH = text("""
    UPDATE scan_cursors SET last_message_id = greatest(last_message_id, :to),
        newest_message_id = greatest(last_message_id, :to), scanned_at = fleet_now(), unreadable = NULL
    WHERE id = :cursor
""")
_RELEASE = text("""
    UPDATE scan_cursors SET held_by = NULL, held_until = NULL WHERE id = :held AND held_by = :account
""")
_CHANGED = text("UPDATE scan_cursors SET pts = :pts WHERE id = :held AND pts = :from")


async def readable_sources(database: Database, account_id: int) -> list[Readable]:
    """What this account can read, longest unread first."""
    async with database.reading() as connection:
        rows = await connection.execute(_READABLE, {"account": account_id})
        return [
            Readable(
                channel_id=row.id,
                ref=ChannelRef(row.telegram_id, row.access_hash),
                title=row.title,
                kind=row.kind,
                visible_from=row.visible_from,
                last_message_id=row.last,
                pts=row.pts,
                is_unfinished=row.is_unfinished,
                member_since=row.member_since,
            )
            for row in rows
        ]


async def hold(
    database: Database, account_id: int, readable: Readable, head: ChannelHead, seconds: float
) -> Source | None:
    """Have the channel's cursor to ourselves; None if another account is reading the channel.

    Only who is known to see everything moves the cursor that all share.
    """
    assert readable.visible_from is not None, "how much is seen is asked before anything is read"
    sees_all = readable.visible_from == 0
    owner = None if sees_all else account_id
    async with database.transaction("cursors.hold") as connection:
        values = {
            "channel": readable.channel_id,
            "owner": owner,
            "account": account_id,
            "top": head.top_message,
            "pts": head.pts,
            "hold": seconds,
        }
        row = (await connection.execute(_HOLD, values)).one_or_none()
        if row is None:
            return None
        reread = (row.reread_at, row.reread_to)
        if readable.kind == "supergroup":
            reread = await end_topics(connection, readable.channel_id, owner, row.id) or reread
    return Source(
        account_id=account_id,
        channel_id=readable.channel_id,
        cursor_id=row.id,
        held_id=row.id,
        topic_id=0,
        ref=readable.ref,
        title=readable.title,
        last_message_id=row.last_message_id,
        newest_message_id=row.newest_message_id,
        pts=row.pts,
        position=start_of(row.last_message_id),
        sees_all=sees_all,
        member_since=readable.member_since,
        hold_seconds=seconds,
        reread_at=reread[0],
        reread_to=reread[1],
        can_hide=readable.kind != "channel",
    )


def start_of(last_message_id: int) -> int:
    """Where reading begins when the cursor stands here."""
    return max(0, last_message_id - READ_AGAIN)


async def advance_cursor(connection: AsyncConnection, source: Source, to_message_id: int, seen: int) -> None:
    """Move the cursor, inside the transaction that keeps what lies behind it; only from where we read it."""
    values = {
        "to": max(to_message_id, source.last_message_id),
        "seen": seen,
        "cursor": source.cursor_id,
        "from": source.last_message_id,
    }
    await require_hold(connection, source)
    if not (await connection.execute(_ADVANCE, values)).rowcount:
        raise FenceLostError(f"another account is reading {source.title}")


async def require_hold(connection: AsyncConnection, source: Source) -> None:
    """Stop if another account reads the channel, or this one may see less of it; else it stays ours."""
    values = {
        "held": source.held_id,
        "account": source.account_id,
        "hold": source.hold_seconds,
        "sees_all": source.sees_all,
        "since": source.member_since,
    }
    if not (await connection.execute(_KEEP_HOLD, values)).rowcount:
        raise FenceLostError(
            f"another account is reading {source.title}, or this one sees less of it than it did"
        )


async def finish(database: Database, source: Source, to_message_id: int) -> None:
    """Everything up to this message was read, whatever ids the last messages had."""
    async with database.transaction("cursors.finish") as connection:
        await require_hold(connection, source)
        await connection.execute(_FINISH, {"cursor": source.cursor_id, "to": to_message_id})


async def release(database: Database, source: Source) -> None:
    """Let others read the channel."""
    async with database.transaction("cursors.release") as connection:
        await connection.execute(_RELEASE, {"held": source.held_id, "account": source.account_id})


async def note_changes(connection: AsyncConnection, source: Source, pts: int) -> Source:
    """What happened up to here is kept, inside the transaction that keeps it."""
    await require_hold(connection, source)
    values = {"held": source.held_id, "from": source.pts, "pts": pts}
    if not (await connection.execute(_CHANGED, values)).rowcount:
        raise FenceLostError(f"another account is reading {source.title}")
    return replace(source, pts=pts)
