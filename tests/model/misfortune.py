"""What may go wrong: processes, connections, PostgreSQL and its clock, Telegram, and who lets whom in."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeAlias

from fleet_state import (
    ACCOUNTS,
    DISTANT,
    NOBODY,
    SOMEBODY_GONE,
    Protocol,
    Scope,
    Session,
    State,
    freed,
    places,
    process_name,
    put,
    with_session,
    with_sessions_of,
)
from owning import asleep

Happenings: TypeAlias = Iterator[tuple[str, State]]


class Misfortune:
    """Everything of which a schedule has only so much."""

    def __init__(self, protocol: Protocol, scope: Scope) -> None:
        self._protocol = protocol
        self._scope = scope
        self._places = places(scope)

    def faults(self, state: State) -> Happenings:
        """What may go wrong next, and the state after it."""
        for number, process in enumerate(state.processes):
            if process in ("up", "paused"):
                yield f"{process_name(self._scope, number)} is killed", self._killed(state, number)
            if process == "up":
                stopped = with_sessions_of(state, self._places, number, asleep)
                yield (
                    f"{process_name(self._scope, number)} stops",
                    stopped._replace(processes=put(state.processes, number, "paused")),
                )
        for place in self._places:
            session = state.sessions[place.session]
            if session.line:
                yield (
                    f"{place.name} loses its lock connection ({ACCOUNTS[place.account]})",
                    with_session(
                        state,
                        place.session,
                        session._replace(line=False, silent=False),
                        locks=freed(state.locks, place.session),
                    ),
                )
            if session.is_heard and session.at != "off":
                yield (
                    f"the lock connection of {place.name} falls silent ({ACCOUNTS[place.account]})",
                    with_session(
                        state,
                        place.session,
                        session._replace(silent=True),
                        locks=freed(state.locks, place.session),
                    ),
                )
        if any(session.is_heard for session in state.sessions):
            # With a mark of its own for the server that was started, nothing that stood still before counts.
            forgotten = tuple(session._replace(line=False, silent=False) for session in state.sessions)
            restarted = state._replace(sessions=forgotten, locks=(NOBODY,) * 3, still=(0, 0))
            yield "PostgreSQL is started again and forgets all locks", restarted
        # To a protocol that compares no times a step of the clock changes nothing.
        for step in () if self._protocol.waits_by_own_clock else self._scope.clock_steps:
            shown = DISTANT if step == "back" else 0
            left = tuple(shown if row != NOBODY else 0 for row in state.rows)
            yield f"PostgreSQL's clock steps {step}", state._replace(left=left)
        if self._scope.publishing:
            yield from self._troubles(state)

    def _troubles(self, state: State) -> Happenings:
        for account, name in enumerate(ACCOUNTS):
            if not state.banned[account]:
                yield f"Telegram bans account {name}", state._replace(banned=put(state.banned, account, True))
            if state.sees_source[account]:
                yield (
                    f"account {name} is let in again at the source, and sees only what comes later",
                    state._replace(sees_source=put(state.sees_source, account, False)),
                )
            if state.unseen[account] != state.messages or (
                state.intent and account not in state.intent.blind
            ):
                yield (
                    f"account {name} is let in again at the destination, and sees only what comes later",
                    _blinded(state, account),
                )
        for call in state.calls:
            calls = tuple(other for other in state.calls if other != call)
            yield f"the call of {call[0]} is lost", state._replace(calls=calls)
        if (
            all(session.at == "off" for session in state.sessions)
            and not state.calls
            and state.archive != "unread"
        ):
            older = state._replace(
                archive="unread", intent=None, package="", rows=(SOMEBODY_GONE,) * 2, still=(0, 0)
            )
            yield "an older backup of the database takes its place", older

    def _killed(self, state: State, number: int) -> State:
        locks = state.locks
        for place in self._places:
            if place.process == number:
                locks = freed(locks, place.session)
        state = with_sessions_of(state, self._places, number, lambda _: Session())
        gone = "over" if number >= self._scope.workers else "dead"
        return state._replace(processes=put(state.processes, number, gone), locks=locks)


def _blinded(state: State, account: int) -> State:
    """The account sees nothing of what the destination holds so far."""
    intent = state.intent
    if intent is not None:
        intent = intent._replace(blind=intent.blind | {account})
    return state._replace(unseen=put(state.unseen, account, state.messages), intent=intent)
