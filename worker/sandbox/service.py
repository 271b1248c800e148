"""Service messages: pings, acknowledgements, salts, states. No rule and no account touches them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pyrogram import raw

from worker.sandbox import salts
from worker.sandbox.tl import rpc_result

if TYPE_CHECKING:
    from worker.sandbox.connection import Connection
    from worker.sandbox.ledger.rows import Key
    from worker.sandbox.session import Session

UNKNOWN, RECEIVED = 1, 4
SERVICE = (
    raw.types.MsgsAck,
    raw.types.MsgsStateInfo,
    raw.types.MsgsAllInfo,
    raw.types.MsgResendReq,
    raw.types.MsgsStateReq,
    raw.types.HttpWait,
    raw.functions.Ping,
    raw.functions.PingDelayDisconnect,
    raw.functions.GetFutureSalts,
    raw.functions.RpcDropAnswer,
    raw.functions.DestroySession,
)


def _drop(session: Session, req_msg_id: int) -> Any:
    """The call itself goes on: only its answer is not sent."""
    if req_msg_id not in session.running:
        return raw.types.RpcAnswerUnknown()
    session.unwanted.add(req_msg_id)
    return raw.types.RpcAnswerDroppedRunning()


def is_service(query: Any) -> bool:
    return isinstance(query, SERVICE)


def answer(connection: Connection, key: Key, session: Session, msg_id: int, query: Any) -> bytes | None:
    """Return the reply to a service message, None if it asks for none."""
    reply: Any = None
    match query:
        case raw.functions.Ping():
            reply = raw.types.Pong(msg_id=msg_id, ping_id=query.ping_id)
        case raw.functions.PingDelayDisconnect():
            connection.hang_up_after(query.disconnect_delay)
            reply = raw.types.Pong(msg_id=msg_id, ping_id=query.ping_id)
        case raw.functions.GetFutureSalts():
            reply = salts.future(key, msg_id, query.num)
        case raw.types.MsgsStateReq() | raw.types.MsgResendReq():
            # Answers are not kept for resending: a call whose answer was lost counts as received, no more.
            states = bytes(RECEIVED if session.knows(known) else UNKNOWN for known in query.msg_ids)
            reply = raw.types.MsgsStateInfo(req_msg_id=msg_id, info=states.decode("latin-1"))
        case raw.functions.RpcDropAnswer():
            return rpc_result(msg_id, _drop(session, query.req_msg_id).write(), compress=False)
        case raw.functions.DestroySession():
            gone = connection.sandbox.forget_session(key.key_id, query.session_id)
            kind = raw.types.DestroySessionOk if gone else raw.types.DestroySessionNone
            reply = kind(session_id=query.session_id)
    return None if reply is None else bytes(reply.write())
