"""Setting the scene: accounts, channels, and what befalls them."""

from __future__ import annotations

import asyncio
import os
from typing import TYPE_CHECKING, Any

from pyrogram import raw

from worker.sandbox import srp
from worker.sandbox.admin.commands import account_of, command
from worker.sandbox.handlers.dialogs import ARCHIVE
from worker.sandbox.handlers.forum import ICON_COLOR
from worker.sandbox.handlers.invites import PREFIX
from worker.sandbox.ledger.channels import GENERAL_TOPIC
from worker.sandbox.ledger.rows import Role
from worker.sandbox.shaping import Shape

if TYPE_CHECKING:
    from worker.sandbox.ledger.rows import Account
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
async def hide_history(sandbox: Sandbox, channel_id: int, hidden: bool) -> None:
    sandbox.ledger.channels.change(channel_id, hidden_history=int(hidden))


@command
async def clear_history(sandbox: Sandbox, channel_id: int, phone: str) -> None:
    """For this member alone, as in its app: what was posted so far is hidden, and it stays in the channel."""
    sandbox.ledger.channels.hide_so_far(channel_id, account_of(sandbox, phone).user_id)


@command
async def set_forum(sandbox: Sandbox, channel_id: int, forum: bool) -> None:
    channels = sandbox.ledger.channels
    if forum and all(row["topic_id"] != GENERAL_TOPIC for row in channels.topics(channel_id)):
        creator = channels.need(channel_id).creator
        channels.add_topic(channel_id, GENERAL_TOPIC, "General", ICON_COLOR, creator)
    channels.change(channel_id, forum=int(forum))


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
async def refuse_spent_codes(sandbox: Sandbox, text: str) -> None:
    sandbox.ledger.accounts.spent = text


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
