"""channels.*: making, joining, leaving and describing channels, and who is in them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pyrogram import raw

from worker.sandbox import news
from worker.sandbox.faults import RpcFault
from worker.sandbox.handlers.registry import handles
from worker.sandbox.ledger.messages import Window
from worker.sandbox.ledger.rows import Role
from worker.sandbox.peers import administered, channel_of, readable, user_of
from worker.sandbox.render import View

if TYPE_CHECKING:
    from worker.sandbox.call import Call
    from worker.sandbox.ledger.rows import Channel


def changed(call: Call, channel: Channel) -> Any:
    """The updates that tell the caller of a channel's new state."""
    view = View(call.sandbox, call.me)
    item = raw.types.UpdateChannel(channel_id=channel.channel_id)
    return news.updates([item], [], [view.channel(call.ledger.channels.need(channel.channel_id))])


@handles(raw.functions.channels.CreateChannel)
async def create_channel(call: Call, query: Any) -> Any:
    if not query.title.strip():
        raise RpcFault(400, "CHAT_TITLE_EMPTY")
    channel = call.ledger.channels.create(
        query.title,
        call.me.user_id,
        broadcast=not (query.megagroup or query.forum),
        about=query.about,
        forum=bool(query.forum),
    )
    action = raw.types.MessageActionChannelCreate(title=query.title)
    message, pts = call.ledger.messages.add(
        channel.channel_id, call.me.user_id, action=action.write(), kind="service"
    )
    view = View(call.sandbox, call.me)
    items = [
        raw.types.UpdateChannel(channel_id=channel.channel_id),
        news.new_message(view, message, pts),
    ]
    return news.bundle(view, items, [message])


@handles(raw.functions.channels.GetChannels)
async def get_channels(call: Call, query: Any) -> Any:
    view = View(call.sandbox, call.me)
    return raw.types.messages.Chats(chats=[view.channel(channel_of(call, named)) for named in query.id])


@handles(raw.functions.channels.GetFullChannel)
async def get_full_channel(call: Call, query: Any) -> Any:
    place = readable(call, query.channel)
    channel, member = place.channel, place.member
    assert channel is not None
    administers = member is not None and member.may_administer
    read_max = member.read_max if member else 0
    full = raw.types.ChannelFull(
        id=channel.channel_id,
        about=channel.about,
        read_inbox_max_id=read_max,
        read_outbox_max_id=channel.last_id,
        unread_count=call.ledger.messages.count(
            place.box, Window(first_id=max(place.first_id, read_max + 1))
        ),
        chat_photo=raw.types.PhotoEmpty(id=0),
        notify_settings=raw.types.PeerNotifySettings(),
        bot_info=[],
        pts=channel.pts,
        participants_count=call.ledger.channels.member_count(channel.channel_id),
        can_view_participants=administers or not channel.broadcast or None,
        hidden_prehistory=bool(channel.hidden_history) or None,
        available_min_id=place.first_id or None,
    )
    view = View(call.sandbox, call.me)
    return raw.types.messages.ChatFull(full_chat=full, chats=[view.channel(channel)], users=[])


@handles(raw.functions.channels.JoinChannel)
async def join_channel(call: Call, query: Any) -> Any:
    channel = channel_of(call, query.channel)
    return enter(call, channel, by_invite=False)


def enter(call: Call, channel: Channel, *, by_invite: bool) -> Any:
    """Make the caller a member: a public channel takes anybody, a private one whom it invited."""
    member = call.ledger.channels.member(channel.channel_id, call.me.user_id)
    if member is not None and member.role is Role.KICKED:
        raise RpcFault(400, "CHANNEL_PRIVATE")
    if member is not None and member.inside:
        if by_invite:
            raise RpcFault(400, "USER_ALREADY_PARTICIPANT")
    elif not (channel.username or by_invite):
        raise RpcFault(400, "CHANNEL_PRIVATE")
    else:
        call.ledger.channels.set_role(channel.channel_id, call.me.user_id, Role.MEMBER)
    return raw.types.messages.ChatInviteJoinResultOk(updates=changed(call, channel))


@handles(raw.functions.channels.LeaveChannel)
async def leave_channel(call: Call, query: Any) -> Any:
    channel = channel_of(call, query.channel)
    member = call.ledger.channels.member(channel.channel_id, call.me.user_id)
    if member is None or not member.inside:
        raise RpcFault(400, "USER_NOT_PARTICIPANT")
    if member.role is Role.CREATOR:
        raise RpcFault(400, "USER_CREATOR")
    call.ledger.channels.set_role(channel.channel_id, call.me.user_id, Role.LEFT)
    return changed(call, channel)


@handles(raw.functions.channels.InviteToChannel)
async def invite_to_channel(call: Call, query: Any) -> Any:
    place = administered(call, query.channel)
    assert place.channel is not None
    for named in query.users:
        user = user_of(call, named)
        member = call.ledger.channels.member(place.box, user.user_id)
        if member is None or not member.inside:
            call.ledger.channels.set_role(place.box, user.user_id, Role.MEMBER)
    return raw.types.messages.InvitedUsers(updates=changed(call, place.channel), missing_invitees=[])


@handles(raw.functions.channels.EditAdmin)
async def edit_admin(call: Call, query: Any) -> Any:
    place = administered(call, query.channel)
    assert place.channel is not None
    rights = query.admin_rights
    has_any = any(getattr(rights, name) for name in rights.__slots__)
    user = user_of(call, query.user_id)
    call.ledger.channels.set_role(place.box, user.user_id, Role.ADMIN if has_any else Role.MEMBER)
    return changed(call, place.channel)


@handles(raw.functions.channels.EditBanned)
async def edit_banned(call: Call, query: Any) -> Any:
    place = administered(call, query.channel)
    assert place.channel is not None
    user = user_of(call, query.participant)
    role = Role.KICKED if query.banned_rights.view_messages else Role.LEFT
    call.ledger.channels.set_role(place.box, user.user_id, role)
    return changed(call, place.channel)


@handles(raw.functions.channels.GetParticipant)
async def get_participant(call: Call, query: Any) -> Any:
    place = readable(call, query.channel)
    user = user_of(call, query.participant)
    member = call.ledger.channels.member(place.box, user.user_id)
    if member is None or member.role is Role.LEFT:
        raise RpcFault(400, "USER_NOT_PARTICIPANT")
    view = View(call.sandbox, call.me)
    return raw.types.channels.ChannelParticipant(
        participant=view.member(member), chats=[], users=[view.user(user)]
    )


@handles(raw.functions.channels.GetParticipants)
async def get_participants(call: Call, query: Any) -> Any:
    place = readable(call, query.channel)
    assert place.channel is not None
    if place.channel.broadcast and not (place.member and place.member.may_administer):
        raise RpcFault(400, "CHAT_ADMIN_REQUIRED")
    members = call.ledger.channels.members(place.box)
    if isinstance(query.filter, raw.types.ChannelParticipantsAdmins):
        members = [member for member in members if member.may_administer]
    page = members[query.offset : query.offset + min(query.limit, 200)]
    view = View(call.sandbox, call.me)
    return raw.types.channels.ChannelParticipants(
        count=len(members),
        participants=[view.member(member) for member in page],
        chats=[],
        users=view.users(member.user_id for member in page),
    )
