"""Asking the ledger, and the rules in force."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from worker.sandbox.admin.commands import command

if TYPE_CHECKING:
    from worker.sandbox.server import Sandbox


@command
async def messages(sandbox: Sandbox, channel_id: int) -> list[dict[str, Any]]:
    """Everything ever posted in a channel, with the hash of each document's bytes."""
    listed = []
    for message in sandbox.ledger.messages.everything(channel_id):
        document = sandbox.ledger.documents.get(message.document_id) if message.document_id else None
        author = sandbox.ledger.accounts.get(message.from_id)
        listed.append(
            {
                "id": message.id,
                "user_id": message.from_id,
                "phone": author.phone if author else None,
                "kind": message.kind,
                "text": message.text,
                "document_id": message.document_id,
                "file_name": document.file_name if document else None,
                "size": document.size if document else None,
                "sha256": await _sha256(sandbox, document.document_id) if document else None,
                "random_id": message.random_id,
                "topic_id": message.topic_id,
                "reply_to": message.reply_to,
                "grouped_id": message.grouped_id,
                "date": message.date,
                "edit_date": message.edit_date,
                "deleted": bool(message.deleted),
            }
        )
    return listed


async def _sha256(sandbox: Sandbox, document_id: int) -> str:
    document = sandbox.ledger.documents.get(document_id)
    assert document is not None
    if document.sha256 is None:
        digest = await asyncio.to_thread(sandbox.ledger.blobs.sha256, document_id)
        sandbox.ledger.documents.set_sha256(document_id, digest)
        return digest
    return document.sha256


@command
async def connections(sandbox: Sandbox) -> list[dict[str, Any]]:
    return sandbox.ledger.journal.connections()


@command
async def calls(sandbox: Sandbox, *, method: str | None = None, after: int = 0) -> list[dict[str, Any]]:
    return sandbox.ledger.journal.calls(method, after)


@command
async def add_rule(sandbox: Sandbox, method: str, action: str, **options: Any) -> int:
    return sandbox.rules.add(method, action, **options)


@command
async def lift_rule(sandbox: Sandbox, rule_id: int) -> None:
    sandbox.rules.lift(rule_id)


@command
async def clear_rules(sandbox: Sandbox) -> None:
    sandbox.rules.clear()


@command
async def rule_hits(sandbox: Sandbox) -> dict[str, int]:
    return {str(rule_id): hits for rule_id, hits in sandbox.rules.hits().items()}
