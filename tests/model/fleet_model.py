"""The whole model: two workers, two accounts, one content, logins, a stranger, time, people, and what may go wrong."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from abilities import Abilities
from exploring import Exploration, Explored, Step
from fleet_state import (
    ACCOUNTS,
    CALL_DEADLINE,
    DISTANT,
    NOBODY,
    SOMEBODY_GONE,
    STRANGER,
    Protocol,
    Scope,
    State,
    beginning,
    places,
    process_name,
    put,
    with_sessions_of,
)
from misfortune import Misfortune
from owning import Owning, awake, is_overdue, ticked
from publishing import Publishing

Yields = Iterator[Step[State]]


class FleetModel:
    """One protocol in one scope, and everything that can happen in it."""

    def __init__(self, protocol: Protocol, scope: Scope) -> None:
        self._protocol = protocol
        self._scope = scope
        self._places = places(scope)
        self._publishing = Publishing(protocol)
        self._abilities = Abilities(protocol)
        self._misfortune = Misfortune(protocol, scope)
        wanted = self._abilities.wanted if scope.publishing else lambda *_: True
        self._owning = Owning(protocol, wanted, idles=not scope.publishing)
        self._publishing.is_silent = self._owning.is_silent

    def explore(self) -> Explored[State]:
        return Exploration(self.steps, self.wrong, self.ended).run(beginning(self._scope))

    def steps(self, state: State) -> Yields:
        """What can happen next: the fleet's work, time, people, the world, and faults as long as there are any left."""
        for place in self._places:
            if state.processes[place.process] == "up":
                session = state.sessions[place.session]
                yield from self._owning.steps(state, place, session)
                if self._scope.publishing:
                    yield from self._publishing.steps(state, place, session)
        yield from self._time(state)
        yield from self._people(state)
        if self._scope.publishing:
            yield from self._world(state)
        if state.faults_left:
            for what, after in self._misfortune.faults(state):
                yield Step(what, after._replace(faults_left=state.faults_left - 1), is_fault=True)

    def _time(self, state: State) -> Yields:
        sessions = [(place, state.sessions[place.session]) for place in self._places]
        if any(is_overdue(state, place, session) for place, session in sessions):
            return
        after, still, left = [], list(state.still), list(state.left)
        heard = set()
        for place, session in sessions:
            is_heard = (
                session.is_heard
                and state.processes[place.process] == "up"
                and state.rows[place.account] == place.process
            )
            if is_heard:
                heard.add(place.account)
            # A login that is no lease has no time of its own: it trusts itself for ever.
            is_leased = self._protocol.login_is_a_lease or not place.is_login
            trusted = self._protocol.trust if is_heard or not is_leased else 0
            after.append(session if session.at == "off" else ticked(session, trusted_again=trusted))
        for account, row in enumerate(state.rows):
            is_quiet = row != NOBODY and account not in heard
            still[account] = min(self._protocol.lease, still[account] + 1) if is_quiet else 0
            if not self._protocol.waits_by_own_clock:
                fewer = left[account] if left[account] == DISTANT else max(0, left[account] - 1)
                left[account] = self._protocol.lease if account in heard else fewer
        calls = tuple((who, ticks - 1) for who, ticks in state.calls if ticks > 1)
        later = state._replace(sessions=tuple(after), still=tuple(still), left=tuple(left), calls=calls)
        if later != state:
            yield Step("time passes", later)

    def _people(self, state: State) -> Yields:
        for number, process in enumerate(state.processes):
            name = process_name(self._scope, number)
            if process == "paused":
                woken = with_sessions_of(state, self._places, number, awake)
                yield Step(f"{name} goes on", woken._replace(processes=put(state.processes, number, "up")))
            elif process == "new":
                yield Step(f"{name} begins", state._replace(processes=put(state.processes, number, "up")))
            elif process == "dead":
                rows = tuple(SOMEBODY_GONE if row == number else row for row in state.rows)
                yield Step(
                    f"{name} is started again",
                    state._replace(processes=put(state.processes, number, "up"), rows=rows),
                )
        if state.intent is not None and self._protocol.people_can_end_it:
            yield from self._end_intent(state)

    def _end_intent(self, state: State) -> Yields:
        if any(state.ready[account] and self._abilities.wanted(state, account) for account in range(2)):
            return
        if state.intent.phase != "ending":
            ending = state.intent._replace(phase="ending")
            yield Step("a person ends the upload that no account can finish", state._replace(intent=ending))
        elif not state.calls:
            yield Step(
                "the upload ends without an account that could look; its set fails with that reason",
                state._replace(intent=None, archive="failed"),
            )

    def _world(self, state: State) -> Yields:
        for call in state.calls:
            calls = tuple(other for other in state.calls if other != call)
            yield Step(
                f"the message of {call[0]} arrives",
                state._replace(messages=state.messages | {call[0]}, calls=calls),
            )
        if state.strangers_left:
            posted = state._replace(messages=state.messages | {STRANGER}, strangers_left=0)
            yield Step("a stranger posts a message with the content's marker", posted)

    def wrong(self, state: State) -> str | None:
        """What must never be."""
        connected = Counter(
            (place.account, session.key)
            for place in self._places
            if (session := state.sessions[place.session]).wire
        )
        shared = next((ACCOUNTS[account] for (account, _), count in connected.items() if count > 1), "")
        # Who works and sees the archive would have published it.
        readers = any(map(all, zip(state.ready, state.sees_source, strict=True)))
        longest = max(session.wait for session in state.sessions)
        mistakes = {
            f"two processes are connected with one session of account {shared}": shared,
            "the content is published twice": len(state.messages - {STRANGER}) > 1,
            "what a stranger posted counts as published, and the archive will never be": state.package
            == STRANGER,
            "what counts as published was taken back": state.package and state.package not in state.messages,
            "the archive is lost to an account that sees it": readers and state.archive in ("passed", "gone"),
            "an account waits for as long as the clock was set back": longest
            > self._protocol.lease + CALL_DEADLINE,
        }
        return next((what for what, is_so in mistakes.items() if is_so), None)

    def ended(self, state: State) -> bool:
        """Whether the work is done, or waits for something that a person is told of."""
        if not self._scope.publishing:
            return any(session.at == "on" for session in state.sessions)
        if state.intent is not None:
            return False
        if state.archive == "published":
            return state.package in state.messages - {STRANGER}
        if state.archive == "failed":
            return True
        # No account that works sees the archive, or all of the destination: the set says so.
        able = [
            account
            for account in range(2)
            if state.ready[account] and state.sees_source[account] and not state.unseen[account]
        ]
        return state.archive in ("unread", "ready") and not able
