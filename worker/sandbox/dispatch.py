"""From a query to an answer: unwrap it, ask the rules, find its handler, and write the call down."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pyrogram import raw

from worker.log import get_logger
from worker.sandbox import handlers
from worker.sandbox.call import Call
from worker.sandbox.faults import Action, RpcFault
from worker.sandbox.ledger.accounts import plain
from worker.sandbox.ledger.journal import CallRecord
from worker.sandbox.tl import file_chunk

if TYPE_CHECKING:
    from worker.sandbox.connection import Connection
    from worker.sandbox.faults import Rule
    from worker.sandbox.session import Session

log = get_logger(__name__)

# File parts by the thousand would drown the journal; what fails is written down all the same.
UNRECORDED = {"upload.saveBigFilePart", "upload.saveFilePart", "upload.getFile"}
# A session that only ever asks these is a media connection: updates go elsewhere.
SILENT_NAMESPACES = {"upload", "help", "auth", "langpack"}


@dataclass(frozen=True, slots=True)
class Outcome:
    """What the client gets to see of a call, in pieces; ``body`` None is silence."""

    body: tuple[bytes, ...] | None = None
    hang_up: bool = False
    garble: bool = False
    compress: bool = False


def method_name(query: Any) -> str:
    """Return the name of a query the way the API's documentation writes it."""
    kind, *path = getattr(query, "QUALNAME", "").split(".")
    if kind != "functions":
        return f"no call: {type(query).__name__}"
    *namespace, name = path
    return ".".join((*namespace, name[0].lower() + name[1:]))


def _unwrap(session: Session, query: Any) -> tuple[Any, bool]:
    """Return the query inside its wrappers, and whether the client wants updates for it."""
    wants_updates = True
    while True:
        match query:
            case raw.functions.InvokeWithLayer():
                session.layer = query.layer
            case raw.functions.InvokeWithoutUpdates():
                wants_updates = False
            case (
                raw.functions.InitConnection()
                | raw.functions.InvokeAfterMsg()
                | raw.functions.InvokeAfterMsgs()
                | raw.functions.InvokeWithTakeout()
            ):
                pass
            case _:
                return query, wants_updates
        query = query.query


async def perform(connection: Connection, session: Session, query: Any) -> Outcome:
    """Answer one call."""
    sandbox = connection.sandbox
    query, wants_updates = _unwrap(session, query)
    method = method_name(query)
    key = sandbox.ledger.keys.get(session.key_id)
    assert key is not None
    if session.layer != key.layer:
        # A key's layer holds until another is named, over restarts of this server too.
        sandbox.ledger.keys.set_layer(key.key_id, session.layer)
    account = None if key.user_id is None else sandbox.ledger.accounts.get(key.user_id)
    call = Call(sandbox, connection, session, key, account)
    if account and wants_updates and method.partition(".")[0] not in SILENT_NAMESPACES:
        session.wants_updates = True
    started = time.time()
    early = account is not None and sandbox.ledger.floods.is_early(account.user_id, method, started)
    # Before the login it is the query that says whose call it is.
    phone = account.phone if account else plain(getattr(query, "phone_number", ""))
    rule = sandbox.rules.match(method, phone or None)
    outcome, error = await _attempt(call, method, query, rule)
    if account is not None and error:
        sandbox.ledger.floods.note(account.user_id, method, error)
    if error or early or sandbox.options.record_all_calls or method not in UNRECORDED:
        sandbox.ledger.journal.call(
            CallRecord(
                started, key.key_id, key.user_id, method, error, connection.address, early, _chat_of(query)
            )
        )
    return outcome


def _chat_of(query: Any) -> int | None:
    addressed = getattr(query, "peer", None) or getattr(query, "channel", None)
    chat: int | None = getattr(addressed, "channel_id", None)
    return chat


async def _attempt(call: Call, method: str, query: Any, rule: Rule | None) -> tuple[Outcome, str]:
    action = rule.action if rule else None
    if action is Action.STALL:
        return Outcome(), "stalled by rule"
    if action is Action.FREEZE:
        call.connection.freeze()
        return Outcome(), "frozen by rule"
    if action is Action.DISCONNECT:
        return Outcome(hang_up=True), "disconnected by rule"
    try:
        with call.sandbox.progress.of(call.key.user_id, query):
            result, error = await _carry_out(call, method, query, rule)
    except RpcFault as fault:
        result, error = _refusal(fault), fault.text
    if action is Action.DROP_REPLY:
        return Outcome(hang_up=True), error
    if action is Action.MUTE:
        return Outcome(), error
    return _written(call, result, action), error


async def _carry_out(call: Call, method: str, query: Any, rule: Rule | None) -> tuple[Any, str]:
    """Return the answer and, if it is a refusal, its text."""
    action = rule.action if rule else None
    if rule and action is Action.DELAY:
        await rule.hold()
    try:
        if rule and action in (Action.ERROR, Action.LIMIT):
            raise RpcFault(rule.code, rule.text)  # noqa: TRY301 - refused by rule or by handler: one way out
        answer, error = await _handle(call, method, query), ""
    except RpcFault as fault:
        answer, error = _refusal(fault), fault.text
    if rule and action is Action.LATE:
        await rule.hold()
    return answer, error


def _refusal(fault: RpcFault) -> Any:
    return raw.types.RpcError(error_code=fault.code, error_message=fault.text)


async def _handle(call: Call, method: str, query: Any) -> Any:
    if call.key.dead:
        raise RpcFault(406 if call.key.dead == "AUTH_KEY_DUPLICATED" else 401, call.key.dead)
    if call.session.layer == 0:
        raise RpcFault(400, "CONNECTION_NOT_INITED")
    handler = handlers.find(type(query))
    if handler is None:
        log.warning("sandbox.method.unknown", method=method)
        raise RpcFault(400, "INPUT_METHOD_INVALID")
    if handler.needs_account:
        call.check_authorised()
    try:
        return await handler.function(call, query)
    except RpcFault:
        raise
    except Exception as bug:
        log.exception("sandbox.handler.failed", method=method)
        raise RpcFault(500, "SANDBOX_BUG") from bug


def _written(call: Call, result: Any, action: Action | None) -> Outcome:
    """Encode a result for the client's layer; spoil it if a rule says so."""
    if isinstance(result, raw.types.upload.File):
        data = result.bytes
        if action is Action.CORRUPT and data:
            data = bytes([data[0] ^ 0xFF]) + data[1:]
        if action is Action.SHORT:
            data = data[: len(data) // 2]
        return Outcome(file_chunk(result.type.write(), result.mtime, data))
    return Outcome((call.encode(result),), garble=action is Action.CORRUPT, compress=True)
