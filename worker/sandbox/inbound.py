"""What arrives on a connection: checks of the envelope, service messages, and calls."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from pyrogram import raw

from worker.sandbox import dispatch, salts, service
from worker.sandbox.faults import RpcFault
from worker.sandbox.tl import MalformedError, read, rpc_result, split_container

if TYPE_CHECKING:
    from worker.sandbox.connection import Connection
    from worker.sandbox.ledger.rows import Key
    from worker.sandbox.session import Session
    from worker.sandbox.wire.envelope import Opened

TOO_OLD, TOO_NEW, BAD_LOW_BITS, REPEATED_CONTAINER, ODD_EXPECTED = 16, 17, 18, 19, 35
BAD_SALT, BAD_CONTAINER = 48, 64
SECONDS_BEHIND, SECONDS_AHEAD = 300, 30


async def receive(connection: Connection, key: Key, opened: Opened) -> None:
    """Check a packet and work through the messages in it."""
    session = connection.sandbox.session(key, opened.session_id)
    connection.adopt(session)
    messages, complaint = None, _complaint(opened)
    try:
        messages = split_container(opened.body)
    except MalformedError:
        complaint = BAD_CONTAINER
    if messages is not None and session.knows(opened.msg_id):
        complaint = complaint or REPEATED_CONTAINER
    if complaint:
        refusal = raw.types.BadMsgNotification(
            bad_msg_id=opened.msg_id, bad_msg_seqno=opened.seq_no, error_code=complaint
        )
        connection.post(session, refusal.write(), answer=True, content=False)
        return
    if not salts.is_valid(key, opened.salt):
        refusal = raw.types.BadServerSalt(
            bad_msg_id=opened.msg_id,
            bad_msg_seqno=opened.seq_no,
            error_code=BAD_SALT,
            new_server_salt=salts.current(key),
        )
        connection.post(session, refusal.write(), answer=True, content=False)
        return
    if not session.greeted:
        session.greeted = True
        greeting = raw.types.NewSessionCreated(
            first_msg_id=opened.msg_id, unique_id=session.session_id, server_salt=salts.current(key)
        )
        connection.post(session, greeting.write())
    if messages is None:
        await _message(connection, key, session, opened.msg_id, opened.seq_no, opened.body)
        return
    session.is_repeat(opened.msg_id)
    for msg_id, seq_no, body in messages:
        await _message(connection, key, session, msg_id, seq_no, body)


def _complaint(opened: Opened) -> int:
    """Return the error code for a message id the protocol forbids, 0 if there is nothing to say."""
    if opened.msg_id % 4:
        return BAD_LOW_BITS
    age = time.time() - opened.msg_id / 2**32
    if age > SECONDS_BEHIND:
        return TOO_OLD
    if age < -SECONDS_AHEAD:
        return TOO_NEW
    return 0


async def _message(
    connection: Connection, key: Key, session: Session, msg_id: int, seq_no: int, body: bytes
) -> None:
    # A repeated message was answered, or is being answered: applying it again would break exactly-once.
    if session.is_repeat(msg_id):
        answered = session.answer_to(msg_id)
        if answered is not None:
            connection.post(session, answered, answer=True)
        return
    try:
        query = read(body)
    except KeyError as error:
        unknown = error.args[0]
        name = f"{unknown:08x}" if isinstance(unknown, int) else str(unknown)
        _answer(connection, session, msg_id, RpcFault(400, f"INPUT_METHOD_INVALID_{name}"))
        return
    except MalformedError:
        _answer(connection, session, msg_id, RpcFault(400, "INPUT_FETCH_ERROR"))
        return
    if service.is_service(query):
        reply = service.answer(connection, key, session, msg_id, query)
        if reply is not None:
            connection.post(session, reply, answer=True, content=False)
        return
    if seq_no % 2 == 0:
        refusal = raw.types.BadMsgNotification(
            bad_msg_id=msg_id, bad_msg_seqno=seq_no, error_code=ODD_EXPECTED
        )
        connection.post(session, refusal.write(), answer=True, content=False)
        return
    await connection.slots.acquire()
    session.running.add(msg_id)
    # A call that was accepted is carried out even if the client hangs up meanwhile.
    connection.sandbox.run(_call(connection, session, msg_id, query))


def _answer(connection: Connection, session: Session, msg_id: int, fault: RpcFault) -> None:
    error = raw.types.RpcError(error_code=fault.code, error_message=fault.text)
    connection.post(session, rpc_result(msg_id, error.write(), compress=False), answer=True)


async def _call(connection: Connection, session: Session, msg_id: int, query: Any) -> None:
    """Perform a call; its place is given back when the answer is written, or when there will be none."""
    try:
        outcome = await dispatch.perform(connection, session, query)
    finally:
        session.running.discard(msg_id)
    if outcome.hang_up:
        connection.hang_up()
    if outcome.body is None or msg_id in session.unwanted:
        session.unwanted.discard(msg_id)
        connection.slots.release()
        return
    answer = rpc_result(msg_id, *outcome.body, compress=outcome.compress)
    session.keep_answer(msg_id, answer)
    connection.post(
        session,
        answer,
        answer=True,
        garble=outcome.garble,
        written=connection.slots.release,
    )
