"""Setting the scene: accounts, channels, postings, and what befalls them."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyrogram import raw
from pyrogram.raw.core import Vector

from worker.sandbox import media, news, srp
from worker.sandbox.admin.commands import account_of, command
from worker.sandbox.handlers.dialogs import ARCHIVE
from worker.sandbox.handlers.forum import ICON_COLOR
from worker.sandbox.handlers.invites import PREFIX
from worker.sandbox.ledger.database import new_id
from worker.sandbox.ledger.rows import Role
from worker.sandbox.shaping import Shape

if TYPE_CHECKING:
    from worker.sandbox.ledger.rows import Account, Message
    from worker.sandbox.render import View
    from worker.sandbox.server import Sandbox

PUBLISHER = "42000000"


@command
async def create_account(
    sandbox: Sandbox, phone: str, first_name: str, *, premium: bool = False, password: str | None = None
) -> dict[str, Any]:
    account = sandbox.ledger.accounts.create(phone, first_name, premium=premium)
    if password is not None:
        await set_password(sandbox, phone, password)
    return {"user_id": account.user_id}


@command
async def set_password(sandbox: Sandbox, phone: str, password: str | None) -> None:
    """Ask for this password after the code from here on; None ends that."""
    account = account_of(sandbox, phone)
    if password is None:
        sandbox.ledger.accounts.clear_password(account.user_id)
        return
    salt1, salt2 = os.urandom(16), os.urandom(16)
    verifier = await asyncio.to_thread(srp.verifier, password, salt1, salt2)
    sandbox.ledger.accounts.set_password(account.user_id, salt1, salt2, verifier, "")


def _publisher(sandbox: Sandbox) -> Account:
    """The stranger who owns the channels that none of the test's accounts owns."""
    known = sandbox.ledger.accounts.by_phone(PUBLISHER)
    return known or sandbox.ledger.accounts.create(PUBLISHER, "Publisher")


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
    owner = account_of(sandbox, admins[0]) if admins else _publisher(sandbox)
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
        account = account_of(sandbox, phone)
        if account.user_id != owner.user_id:
            role = Role.ADMIN if phone in admins else Role.MEMBER
            channels.set_role(channel.channel_id, account.user_id, role)
    return {"channel_id": channel.channel_id}


def _post(sandbox: Sandbox, channel_id: int, by: str | None, **columns: Any) -> Message:
    channel = sandbox.ledger.channels.need(channel_id)
    author = channel.creator if by is None else account_of(sandbox, by).user_id
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
async def replace_document(sandbox: Sandbox, channel_id: int, message_id: int, document_id: int) -> None:
    """Edit a message: it shows another document from now on, one that exists already."""
    message = sandbox.ledger.messages.get(channel_id, message_id)
    document = sandbox.ledger.documents.get(document_id)
    if message is None or document is None:
        raise ValueError(f"there is no message {message_id}, or no document {document_id}")
    edited, pts = sandbox.ledger.messages.edit(message, document_id=document_id, kind=document.kind)

    def make(view: View) -> Any:
        return news.bundle(view, [news.edited_message(view, edited, pts)], [edited])

    news.announce(sandbox, channel_id, make)


@command
async def delete_messages(sandbox: Sandbox, channel_id: int, ids: list[int]) -> dict[str, Any]:
    gone, pts = sandbox.ledger.messages.delete(channel_id, ids)
    if gone:
        item = news.deleted_messages(channel_id, gone, pts)
        news.announce(sandbox, channel_id, lambda _: news.updates([item], [], []))
    return {"deleted": gone}


@command
async def hide_from_search(sandbox: Sandbox, channel_id: int, ids: list[int]) -> None:
    sandbox.ledger.messages.hide_from_search(channel_id, ids)


@command
async def create_topic(sandbox: Sandbox, channel_id: int, title: str) -> dict[str, Any]:
    channel = sandbox.ledger.channels.need(channel_id)
    action = raw.types.MessageActionTopicCreate(title=title, icon_color=ICON_COLOR)
    message, _ = sandbox.ledger.messages.add(
        channel_id, channel.creator, opens_topic=True, action=action.write(), kind="service"
    )
    sandbox.ledger.channels.add_topic(channel_id, message.id, title, ICON_COLOR, channel.creator)
    return {"topic_id": message.id}


@command
async def set_premium(sandbox: Sandbox, phone: str, premium: bool) -> None:
    sandbox.ledger.accounts.set_premium(account_of(sandbox, phone).user_id, premium)


@command
async def ban_account(sandbox: Sandbox, phone: str, banned: bool = True) -> None:
    sandbox.ledger.accounts.set_banned(account_of(sandbox, phone).user_id, banned)


@command
async def revoke_sessions(sandbox: Sandbox, phone: str) -> None:
    """Every key of the account answers SESSION_REVOKED from here on."""
    sandbox.ledger.keys.kill_all_of(account_of(sandbox, phone).user_id, "SESSION_REVOKED")


@command
async def kick(sandbox: Sandbox, channel_id: int, phone: str) -> None:
    sandbox.ledger.channels.set_role(channel_id, account_of(sandbox, phone).user_id, Role.KICKED)


@command
async def join(sandbox: Sandbox, channel_id: int, phone: str, *, admin: bool = False) -> None:
    role = Role.ADMIN if admin else Role.MEMBER
    sandbox.ledger.channels.set_role(channel_id, account_of(sandbox, phone).user_id, role)


@command
async def archive_chat(sandbox: Sandbox, channel_id: int, phone: str) -> None:
    sandbox.ledger.channels.set_folder(channel_id, account_of(sandbox, phone).user_id, ARCHIVE)


@command
async def set_noforwards(sandbox: Sandbox, channel_id: int, noforwards: bool) -> None:
    sandbox.ledger.channels.change(channel_id, noforwards=int(noforwards))


@command
async def set_repeats(sandbox: Sandbox, *, as_errors: bool) -> None:
    """Say how a repeated random_id is answered: as an error, or with the original message."""
    sandbox.ledger.db.set("repeats_are_errors", "1" if as_errors else "0")


@command
async def set_shape(sandbox: Sandbox, *, rtt_ms: float, mbps: float, account_mbps: float) -> None:
    sandbox.presence.reshape(Shape(rtt_ms, mbps, account_mbps))


@command
async def expire_references(sandbox: Sandbox) -> None:
    sandbox.ledger.db.set("reference_generation", str(sandbox.references.expire_all()))


@command
async def lose_parts(sandbox: Sandbox, phone: str, parts: list[int]) -> dict[str, int]:
    return {"lost": sandbox.ledger.documents.lose_parts(account_of(sandbox, phone).user_id, parts)}


@command
async def disconnect(sandbox: Sandbox, phone: str) -> None:
    """Cut every connection of the account."""
    for connection in sandbox.presence.of(account_of(sandbox, phone).user_id):
        connection.hang_up()


@command
async def freeze(sandbox: Sandbox, phone: str) -> None:
    """Let every connection of the account fall silent without closing it."""
    for connection in sandbox.presence.of(account_of(sandbox, phone).user_id):
        connection.freeze()


@command
async def invite_link(sandbox: Sandbox, channel_id: int) -> str:
    return PREFIX + sandbox.ledger.channels.invite(channel_id)
