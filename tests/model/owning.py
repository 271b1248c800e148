"""Who may be connected with an account: locks, marks, trust, and logins. What decision 018 says, step by step."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from exploring import Step
from fleet_state import (
    ACCOUNTS,
    DISCONNECT,
    NOBODY,
    OPEN,
    Place,
    Protocol,
    Session,
    State,
    freed,
    put,
    with_session,
)

CONTENT = 2
# Where a session believes that it holds the lock of the content, and of the other account.
HAS_CONTENT = frozenset(("cleared", "looking", "owned", "poised", "sending", "known", "taking"))
HAS_GUEST = frozenset(("guest", "taking"))
Yields = Iterator[Step[State]]


class Owning:
    """``wanted`` says whether a worker has anything to do for an account."""

    def __init__(self, protocol: Protocol, wanted: Callable[[State, int], bool], *, idles: bool) -> None:
        self._protocol = protocol
        self._wanted = wanted
        self._idles = idles

    def steps(self, state: State, place: Place, session: Session) -> Yields:
        """What a process that runs may do about owning the account, and about not owning it any more."""
        if session.at == "off":
            if place.is_login or (state.ready[place.account] and self._wanted(state, place.account)):
                yield from self._take(state, place)
            return
        if not session.trust:
            yield Step(f"{place.name} gives up {_account(place)}: its lease has run out", _gone(state, place))
            return
        if session.silent:
            noticed = session._replace(line=False, silent=False)
            yield Step(
                f"{place.name} notices that its lock connection is gone",
                with_session(state, place.session, noticed),
            )
        if not session.line and self._is_leased(place):
            yield from self._regain(state, place, session)
        if session.at == "held" and not session.wait:
            yield self._connect(state, place, session)
        if place.is_login:
            yield from self._log_in(state, place, session)
        elif state.banned[place.account] and session.wire:
            yield Step(
                f"{place.name} learns that {_account(place)} is banned",
                _ended(state, place)._replace(ready=put(state.ready, place.account, False)),
            )
        elif session.at == "on" and (self._idles or not self._wanted(state, place.account)):
            yield Step(f"{place.name} is done with {_account(place)}", _ended(state, place))

    def _is_leased(self, place: Place) -> bool:
        return self._protocol.login_is_a_lease or not place.is_login

    def is_silent(self, state: State, account: int, process: int) -> bool:
        """Whether no other process can be connected with the account any more."""
        named = state.rows[account]
        return named in (NOBODY, process) or state.still[account] >= self._protocol.patience

    def _take(self, state: State, place: Place) -> Yields:
        account, holder = place.account, state.locks[place.account]
        if not self._is_leased(place):
            if holder == NOBODY:
                locks = put(state.locks, account, place.session)
                taken = Session("held", self._protocol.trust, line=True)
                yield Step(
                    f"{place.name} locks {_account(place)}",
                    with_session(state, place.session, taken, locks=locks),
                )
        elif self._protocol.waits_by_own_clock:
            if self.is_silent(state, account, place.process):
                if holder == NOBODY:
                    yield self._begin(state, place, 0)
                elif state.rows[account] not in (NOBODY, place.process):
                    yield from self._end_silent(state, place, holder)
        elif holder == NOBODY:
            # The row says how long the last owner's connections may be open, in the database's time.
            yield self._begin(state, place, state.left[account] if state.rows[account] != NOBODY else 0)
        elif state.rows[account] != NOBODY and not state.left[account]:
            yield self._end(state, place, holder)

    def _end_silent(self, state: State, place: Place, holder: int) -> Yields:
        held = [account for account in range(2) if state.locks[account] == holder]
        if all(state.still[account] >= self._protocol.patience for account in held):
            yield self._end(state, place, holder)

    def _end(self, state: State, place: Place, holder: int) -> Step[State]:
        ended = with_session(state, holder, state.sessions[holder]._replace(line=False))
        return Step(
            f"{place.name} ends the silent session that holds {_account(place)}",
            ended._replace(locks=freed(state.locks, holder)),
        )

    def _begin(self, state: State, place: Place, wait: int) -> Step[State]:
        account = place.account
        what = f"{place.name} owns {_account(place)}" + (f", and waits for {wait}" if wait else "")
        after = with_session(
            state,
            place.session,
            Session("held", self._protocol.trust, line=True, wait=wait),
            locks=put(state.locks, account, place.session),
        )
        return Step(what, self.renewed(after, account)._replace(rows=put(state.rows, account, place.process)))

    def renewed(self, state: State, account: int) -> State:
        """The state after the account's owner was heard of."""
        left = (
            state.left
            if self._protocol.waits_by_own_clock
            else put(state.left, account, self._protocol.lease)
        )
        return state._replace(still=put(state.still, account, 0), left=left)

    def _regain(self, state: State, place: Place, session: Session) -> Yields:
        if state.rows[place.account] != place.process:
            return
        wanted = [place.account]
        if session.at in HAS_CONTENT:
            wanted.append(CONTENT)
        if session.at in HAS_GUEST:
            wanted.append(1 - place.account)
        if any(state.locks[lock] != NOBODY for lock in wanted):
            return
        locks = state.locks
        for lock in wanted:
            locks = put(locks, lock, place.session)
        regained = session._replace(line=True, trust=self._protocol.trust)
        after = with_session(state, place.session, regained, locks=locks)
        yield Step(
            f"{place.name} has its locks of {_account(place)} again", self.renewed(after, place.account)
        )

    def _connect(self, state: State, place: Place, session: Session) -> Step[State]:
        if not place.is_login:
            on = session._replace(at="on", wire=OPEN, key=state.key if place.account == 0 else 0)
            return Step(
                f"{place.name} is connected as {_account(place)}", with_session(state, place.session, on)
            )
        # It goes on with the session of a login that was begun before.
        key = state.pending_key or place.process
        typing = session._replace(at="typing", wire=OPEN, key=key)
        return Step(
            f"{place.name} is connected as {_account(place)}; a code was sent",
            with_session(state, place.session, typing, pending_key=key),
        )

    def _log_in(self, state: State, place: Place, session: Session) -> Yields:
        if session.at == "typing":
            if self._protocol.login_saves_last:
                yield Step(
                    f"the code is given, and {place.name} closes its connection",
                    with_session(state, place.session, session._replace(at="closed", wire=0)),
                )
            else:
                yield self._save(state, place, session._replace(at="saved"), "goes on with its connection")
        elif session.at == "closed":
            if not self._is_leased(place) or state.rows[place.account] == place.process:
                saved = self._save(state, place, session, "ends")
                yield Step(saved.what, self._over(saved.after, place))
        elif session.at == "saved":
            yield Step(f"{place.name} ends", self._over(state, place))

    def _save(self, state: State, place: Place, session: Session, then: str) -> Step[State]:
        after = with_session(state, place.session, session, key=session.key, pending_key=0)
        return Step(
            f"{place.name} writes down its session and that {_account(place)} is ready, and {then}", after
        )

    def _over(self, state: State, place: Place) -> State:
        after = _ended(state, place) if self._is_leased(place) else _gone(state, place)
        return after._replace(processes=put(state.processes, place.process, "over"))


def _account(place: Place) -> str:
    return f"account {ACCOUNTS[place.account]}"


def _gone(state: State, place: Place) -> State:
    """The session is over; its owner could not say so."""
    return with_session(state, place.session, Session(), locks=freed(state.locks, place.session))


def _ended(state: State, place: Place) -> State:
    """The session's connections are closed, and its owner says so if the row is still its own."""
    after = _gone(state, place)
    if state.rows[place.account] != place.process:
        return after
    return after._replace(
        rows=put(state.rows, place.account, NOBODY),
        still=put(state.still, place.account, 0),
        left=put(state.left, place.account, 0),
    )


def is_overdue(state: State, place: Place, session: Session) -> bool:
    """Whether its owner's time is over, and it has not given up: that takes no time."""
    return session.at != "off" and not session.trust and state.processes[place.process] == "up"


def ticked(session: Session, *, trusted_again: int) -> Session:
    """The session one tick later; its trust is counted anew if it was heard."""
    trust = trusted_again or max(0, session.trust - 1)
    wire = session.wire if session.wire in (0, OPEN) else session.wire - 1
    return session._replace(trust=trust, wire=wire, wait=max(0, session.wait - 1))


def asleep(session: Session) -> Session:
    """The session of a process that has stopped: Telegram hears no more of it."""
    return session._replace(wire=DISCONNECT if session.wire else 0)


def awake(session: Session) -> Session:
    """The session of a process that goes on: in time it connects again, if it has to."""
    is_connected = session.wire or (session.trust and session.at not in ("held", "closed"))
    return session._replace(wire=OPEN if is_connected else 0)
