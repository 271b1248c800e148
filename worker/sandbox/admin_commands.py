"""What a test may ask of the server behind the clients' backs."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyrogram import raw
from pyrogram.raw.core import Vector

from worker.sandbox import media, news, srp
from worker.sandbox.ledger.database import new_id
from worker.sandbox.ledger.rows import Role

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from worker.sandbox.ledger.rows import Account, Message
    from worker.sandbox.render import View
    from worker.sandbox.server import Sandbox

    Command = Callable[..., Awaitable[Any]]

COMMANDS: dict[str, Command] = {}


def command(function: Command) -> Command:
    COMMANDS[function.__name__] = function
    return function


def _account(sandbox: Sandbox, phone: str) -> Account:
    account = sandbox.ledger.accounts.by_phone(phone)
    if account is None:
        raise ValueError(f"no account has the number {phone}")
    return account


@command
async def create_account(
    sandbox: Sandbox, phone: str, first_name: str, *, premium: bool = False, password: str | None = None
) -> dict[str, Any]:
    account = sandbox.ledger.accounts.create(phone, first_name, premium=premium)
    if password is not None:
        salt1, salt2 = os.urandom(16), os.urandom(16)
        verifier = await asyncio.to_thread(srp.verifier, password, salt1, salt2)
        sandbox.ledger.accounts.set_password(account.user_id, salt1, salt2, verifier, "")
    return {"user_id": account.user_id}


@command
async def create_channel(
    sandbox: Sandbox,
    title: str,
    *,
    members: list[str],
    admins: list[str],
    broadcast: bool = True,
    username: str | None = None,
    noforwards: bool = False,
    forum: bool = False,
    hidden_history: bool = False,
) -> dict[str, Any]:
    channels = sandbox.ledger.channels
    owner = _account(sandbox, (admins or members)[0])
    channel = channels.create(title, owner.user_id, broadcast=broadcast and not forum, forum=forum)
    channels.change(
        channel.channel_id,
        username=username,
        noforwards=int(noforwards),
        hidden_history=int(hidden_history),
    )
    action = raw.types.MessageActionChannelCreate(title=title)
    sandbox.ledger.messages.add(channel.channel_id, owner.user_id, action=action.write(), kind="service")
    for phone in [*members, *admins]:
        account = _account(sandbox, phone)
        if account.user_id != owner.user_id or not admins:
            role = Role.ADMIN if phone in admins else Role.MEMBER
            channels.set_role(channel.channel_id, account.user_id, role)
    return {"channel_id": channel.channel_id}


def _post(sandbox: Sandbox, channel_id: int, by: str | None, **columns: Any) -> Message:
    channel = sandbox.ledger.channels.need(channel_id)
    author = channel.creator if by is None else _account(sandbox, by).user_id
    message, pts = sandbox.ledger.messages.add(channel_id, author, **columns)

    def make(view: View) -> Any:
        return news.bundle(view, [news.new_message(view, message, pts)], [message])

    news.announce(sandbox, channel_id, make)
    return message


@command
async def post_text(
    sandbox: Sandbox, channel_id: int, text: str, *, by: str | None = None, topic_id: int | None = None
) -> dict[str, Any]:
    return {"message_id": _post(sandbox, channel_id, by, text=text, topic_id=topic_id).id}


@command
async def post_document(
    sandbox: Sandbox,
    channel_id: int,
    path: str,
    file_name: str,
    *,
    caption: str = "",
    mime: str = "application/zip",
    by: str | None = None,
    topic_id: int | None = None,
    reply_to: int | None = None,
    grouped_id: int | None = None,
    photo: bool = False,
    dc_id: int | None = None,
) -> dict[str, Any]:
    document_id = new_id()
    size = await asyncio.to_thread(sandbox.ledger.blobs.adopt, Path(path), document_id)
    attributes = [] if photo else [raw.types.DocumentAttributeFilename(file_name=file_name)]
    document = sandbox.ledger.documents.add(
        document_id,
        kind="photo" if photo else media.kind_of(attributes),
        mime="image/jpeg" if photo else mime,
        size=size,
        file_name=file_name,
        attributes=bytes(Vector(attributes)),
        dc_id=dc_id or sandbox.options.dc_id,
    )
    message = _post(
        sandbox,
        channel_id,
        by,
        text=caption,
        document_id=document_id,
        kind=document.kind,
        topic_id=topic_id,
        reply_to=reply_to,
        grouped_id=grouped_id,
    )
    return {"message_id": message.id, "document_id": document_id}


@command
async def repost(
    sandbox: Sandbox, channel_id: int, document_id: int, *, caption: str = "", by: str | None = None
) -> dict[str, Any]:
    """Post a document that exists already, as a forward without its author does."""
    document = sandbox.ledger.documents.get(document_id)
    if document is None:
        raise ValueError(f"there is no document {document_id}")
    message = _post(sandbox, channel_id, by, text=caption, document_id=document_id, kind=document.kind)
    return {"message_id": message.id, "document_id": document_id}


@command
async def delete_messages(sandbox: Sandbox, channel_id: int, ids: list[int]) -> dict[str, Any]:
    gone, pts = sandbox.ledger.messages.delete(channel_id, ids)
    if gone:
        item = news.deleted_messages(channel_id, gone, pts)
        news.announce(sandbox, channel_id, lambda _: news.updates([item], [], []))
    return {"deleted": gone}


@command
async def create_topic(sandbox: Sandbox, channel_id: int, title: str) -> dict[str, Any]:
    channel = sandbox.ledger.channels.need(channel_id)
    action = raw.types.MessageActionTopicCreate(title=title, icon_color=0x6FB9F0)
    message, _ = sandbox.ledger.messages.add(
        channel_id, channel.creator, action=action.write(), kind="service"
    )
    sandbox.ledger.channels.add_topic(channel_id, message.id, title, 0x6FB9F0, channel.creator)
    return {"topic_id": message.id}


@command
async def set_premium(sandbox: Sandbox, phone: str, premium: bool) -> None:
    sandbox.ledger.accounts.set_premium(_account(sandbox, phone).user_id, premium)


@command
async def ban_account(sandbox: Sandbox, phone: str, banned: bool = True) -> None:
    sandbox.ledger.accounts.set_banned(_account(sandbox, phone).user_id, banned)


@command
async def revoke_sessions(sandbox: Sandbox, phone: str) -> None:
    """Every key of the account answers SESSION_REVOKED from here on."""
    sandbox.ledger.keys.kill_all_of(_account(sandbox, phone).user_id, "SESSION_REVOKED")


@command
async def kick(sandbox: Sandbox, channel_id: int, phone: str) -> None:
    sandbox.ledger.channels.set_role(channel_id, _account(sandbox, phone).user_id, Role.KICKED)


@command
async def join(sandbox: Sandbox, channel_id: int, phone: str, *, admin: bool = False) -> None:
    role = Role.ADMIN if admin else Role.MEMBER
    sandbox.ledger.channels.set_role(channel_id, _account(sandbox, phone).user_id, role)


@command
async def set_noforwards(sandbox: Sandbox, channel_id: int, noforwards: bool) -> None:
    sandbox.ledger.channels.change(channel_id, noforwards=int(noforwards))


@command
async def set_repeats(sandbox: Sandbox, *, as_errors: bool) -> None:
    """Say how a repeated random_id is answered: as an error, or with the original message."""
    sandbox.ledger.db.set("repeats_are_errors", "1" if as_errors else "0")


@command
async def expire_references(sandbox: Sandbox) -> None:
    sandbox.ledger.db.set("reference_generation", str(sandbox.references.expire_all()))


@command
async def lose_parts(sandbox: Sandbox, phone: str, parts: list[int]) -> dict[str, int]:
    return {"lost": sandbox.ledger.documents.lose_parts(_account(sandbox, phone).user_id, parts)}


@command
async def disconnect(sandbox: Sandbox, phone: str) -> None:
    """Cut every connection of the account."""
    sandbox.hang_up_all_of(_account(sandbox, phone).user_id)


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
async def clear_rules(sandbox: Sandbox) -> None:
    sandbox.rules.clear()


@command
async def rule_hits(sandbox: Sandbox) -> dict[str, int]:
    return {str(rule_id): hits for rule_id, hits in sandbox.rules.hits().items()}
