"""What must hold in a world whatever was killed there, by the ledger of the loopback Telegram."""

from collections import Counter
from typing import TYPE_CHECKING

from connection_overlaps import overlaps
from postings import posted_sets

if TYPE_CHECKING:
    from world import World


async def check(world: "World") -> None:
    """Every content was published once and whole, the rows say so, and nothing is left over."""
    posted = await posted_sets(world.admin, world.sources)
    published = [
        m for m in await world.admin.messages(world.destination) if m["document_id"] and not m["deleted"]
    ]
    messages = world.contents.check(published, world.contents.expected(posted))
    rows = await world.fetch(
        """
        SELECT p.content_hash, p.part_count, p.file_count, p.metadata,
               array_agg(pp.message_id ORDER BY pp.ordinal) AS ids
        FROM packages p JOIN package_parts pp ON pp.package_id = p.id GROUP BY p.id
        """
    )
    assert {row["content_hash"]: row["ids"] for row in rows} == messages, "rows and messages disagree"
    for row in rows:
        assert len(row["ids"]) == row["part_count"]
        assert row["metadata"] == "complete"
        assert row["file_count"] == 1
    states = Counter(r["state"] for r in await world.fetch("SELECT state FROM archive_sets"))
    assert set(states) <= {"indexed", "duplicate"}, states
    assert sum(states.values()) == len(posted)
    assert await world.unfinished() == {}
    assert [call for call in await world.admin.calls() if call["early"]] == [], "a flood wait was not kept"
    workspace = world.folder / "data" / "workspace"
    assert not workspace.exists() or list(workspace.iterdir()) == [], "files were left in the workspace"
    await check_connections(world)
    check_logs(world)


async def check_connections(world: "World") -> None:
    """No key was connected from two places at once, and none was lost to that."""
    assert overlaps(await world.admin.connections()) == []
    states = await world.fetch("SELECT DISTINCT state, state_reason FROM accounts")
    assert not [row for row in states if "DUPLICATED" in (row["state_reason"] or "")]


def check_logs(world: "World") -> None:
    """No secret is in any of them."""
    for log in world.workers.logs:
        text = log.read_text()
        assert [secret for secret in world.secrets if secret in text] == [], log
