"""One content, and how it comes to its destination: reading, the intent, the message, the package, and who takes over."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from abilities import Abilities
from exploring import Step
from fleet_state import (
    ACCOUNTS,
    CALL_DEADLINE,
    NOBODY,
    OPEN,
    STRANGER,
    Intent,
    Place,
    Protocol,
    Session,
    State,
    freed,
    put,
    with_session,
)
from owning import CONTENT, HAS_CONTENT

Yields = Iterator[Step[State]]


class Publishing:
    """What a session does with the archive. ``is_silent`` is the rule by which accounts change hands."""

    def __init__(self, protocol: Protocol) -> None:
        self._protocol = protocol
        self._abilities = Abilities(protocol)
        self.is_silent: Callable[[State, int, int], bool] = lambda *_: False

    def steps(self, state: State, place: Place, session: Session) -> Yields:
        """What comes next; a step that writes rows asks for the fence, one that Telegram sees for the lease."""
        if session.at == "on" and session.trust:
            yield from self._begin(state, place, session)
        elif session.at == "guest" and not session.wait and session.trust and session.is_heard:
            yield from self._own(state, place, session, "taking")
        elif session.at in ("cleared", "looking", "owned", "poised", "sending", "known", "taking"):
            yield from getattr(self, f"_{session.at}")(state, place, session)

    # Its steps.

    def _begin(self, state: State, place: Place, session: Session) -> Yields:
        account, name = place.account, _who(place)
        if self._abilities.scans(state, account):
            if state.sees_source[account]:
                yield Step(f"{name} reads the archive's message", state._replace(archive="ready"))
            elif state.archive == "unread":
                yield Step(
                    f"{name} sees no message and moves the cursor past it", state._replace(archive="passed")
                )
            else:
                yield Step(
                    f"{name} does not see the message and takes it for deleted",
                    state._replace(archive="gone"),
                )
        if not session.is_heard:
            return
        if self._abilities.publishes(state, account) and self._is_free(state, place):
            yield from self._clear(state, place, session)
        if self._abilities.finishes(state, account):
            yield from self._own(state, place, session, "looking")
        if self._abilities.takes_over(state, account):
            yield from self._visit(state, place, session)

    def _is_free(self, state: State, place: Place) -> bool:
        """Whether the content may be worked on: its lane in this process first, then its lock."""
        if self._protocol.has_lanes:
            # A work that has lost its locks is still there, and may have them again.
            mine = 2 * place.process
            if any(each.at in HAS_CONTENT for each in state.sessions[mine : mine + 2]):
                return False
        return state.locks[CONTENT] == NOBODY

    def _visit(self, state: State, place: Place, session: Session) -> Yields:
        other = 1 - place.account
        if state.locks[other] != NOBODY:
            return
        wait = CALL_DEADLINE if self._protocol.lets_calls_end else 0
        if self._protocol.waits_by_own_clock:
            if not self.is_silent(state, other, place.process):
                return
        else:
            wait += state.left[other]
        locks = put(state.locks, other, place.session)
        yield Step(
            f"{_who(place)} locks account {ACCOUNTS[other]} too, and waits for {wait}",
            with_session(state, place.session, session._replace(at="guest", wait=wait), locks=locks),
        )

    def _own(self, state: State, place: Place, session: Session, at: str) -> Yields:
        intent = state.intent
        if intent is None or (at == "taking") == (intent.account == place.account):
            yield _back(state, place, session, "finds the upload ended")
        elif self._is_free(state, place):
            yield Step(
                f"{_who(place)} owns the upload that {ACCOUNTS[intent.account]} began",
                with_session(
                    state,
                    place.session,
                    session._replace(at=at),
                    locks=put(state.locks, CONTENT, place.session),
                    intent=intent._replace(fence=place.session),
                ),
            )

    def _clear(self, state: State, place: Place, session: Session) -> Yields:
        """Look for what the destination holds and no row knows; only then publish."""
        strays = sorted(state.messages - state.unseen[place.account] - self._not_ours())
        for stray in strays:
            adopted = state._replace(package=stray, archive="published")
            yield _back(adopted, place, session, f"adopts the message of {stray} as the package")
        if not strays:
            yield Step(
                f"{_who(place)} locks the content, which nobody has published",
                with_session(
                    state,
                    place.session,
                    session._replace(at="cleared"),
                    locks=put(state.locks, CONTENT, place.session),
                ),
            )

    def _cleared(self, state: State, place: Place, session: Session) -> Yields:
        if self._protocol.has_one_intent and (state.intent is not None or state.package):
            yield _back(state, place, session, "finds that somebody else publishes it")
        else:
            yield Step(
                f"{_who(place)} writes its intent",
                with_session(
                    state,
                    place.session,
                    session._replace(at="owned"),
                    intent=Intent(place.account, place.session),
                ),
            )

    def _not_ours(self) -> frozenset[str]:
        return frozenset((STRANGER,)) if self._protocol.marker_is_proven else frozenset()

    def _is_fenced_out(self, state: State, place: Place) -> bool:
        return state.intent is None or state.intent.fence != place.session

    def _looking(self, state: State, place: Place, session: Session) -> Yields:
        intent = state.intent
        if intent is None or self._is_fenced_out(state, place):
            yield _back(state, place, session, "finds that the upload has another owner")
        elif not self._abilities.could_end(state, place.account):
            yield _back(state, place, session, "cannot end the upload")
        elif intent.phase == "ending":
            if session.trust and session.line:
                yield self._take_back(state, place, session)
        elif found := self._found(state, place, intent):
            sent = intent._replace(phase="sent", message=found)
            yield Step(
                f"{_who(place)} finds the message of {found} and writes it down",
                with_session(state, place.session, session._replace(at="known"), intent=sent),
            )
        else:
            yield Step(
                f"{_who(place)} finds no message at the destination",
                with_session(state, place.session, session._replace(at="owned")),
            )

    def _found(self, state: State, place: Place, intent: Intent) -> str:
        if intent.message:
            return intent.message
        there = state.messages - state.unseen[place.account] - self._not_ours()
        return next((who for who in (STRANGER, ACCOUNTS[intent.account]) if who in there), "")

    def _take_back(self, state: State, place: Place, session: Session) -> Step[State]:
        left = state.messages - (frozenset(ACCOUNTS) - state.unseen[place.account])
        ended = state._replace(messages=left, intent=None, archive="failed")
        return _back(ended, place, session, "takes back what was sent, and fails the set with its reason")

    def _owned(self, state: State, place: Place, session: Session) -> Yields:
        intent = state.intent
        if intent is None or self._is_fenced_out(state, place):
            yield _back(state, place, session, "finds that the upload has another owner")
        elif not state.sees_source[place.account]:
            yield _back(state, place, session, "cannot fetch the archive any more")
        else:
            yield Step(
                f"{_who(place)} writes down that it is about to send",
                with_session(
                    state,
                    place.session,
                    session._replace(at="poised"),
                    intent=intent._replace(phase="sending"),
                ),
            )

    def _poised(self, state: State, place: Place, session: Session) -> Yields:
        if session.trust and session.line and session.wire == OPEN and not state.banned[place.account]:
            call = (ACCOUNTS[place.account], CALL_DEADLINE)
            yield Step(
                f"{_who(place)} sends",
                with_session(
                    state,
                    place.session,
                    session._replace(at="sending"),
                    calls=tuple(sorted({*state.calls, call})),
                ),
            )

    def _sending(self, state: State, place: Place, session: Session) -> Yields:
        author = ACCOUNTS[place.account]
        if any(call[0] == author for call in state.calls):
            return
        if author not in state.messages:
            yield Step(
                f"{_who(place)} hears nothing and looks again",
                with_session(state, place.session, session._replace(at="looking")),
            )
        elif state.intent is None or self._is_fenced_out(state, place):
            yield _back(state, place, session, "finds that the upload has another owner")
        else:
            sent = state.intent._replace(phase="sent", message=author)
            yield Step(
                f"{_who(place)} hears that its message is there, and writes it down",
                with_session(state, place.session, session._replace(at="known"), intent=sent),
            )

    def _known(self, state: State, place: Place, session: Session) -> Yields:
        intent = state.intent
        if intent is None or self._is_fenced_out(state, place):
            yield _back(state, place, session, "finds that the upload has another owner")
        else:
            done = state._replace(package=intent.message, archive="published", intent=None)
            yield _back(done, place, session, f"records the message of {intent.message} as the package")

    def _taking(self, state: State, place: Place, session: Session) -> Yields:
        intent = state.intent
        if intent is None or self._is_fenced_out(state, place):
            yield _back(state, place, session, "finds that the upload has another owner")
            return
        if self._protocol.takers_ask_for_sight and not self._abilities.could_end(state, place.account):
            yield _back(state, place, session, "does not see all that may have been sent")
            return
        if intent.phase == "ending":
            if session.trust and session.line:
                yield self._take_back(state, place, session)
            return
        found = self._found(state, place, intent)
        phase = "sent" if found else "planned"
        mine = Intent(place.account, place.session, phase, found, intent.blind)
        what = f"has found the message of {found}" if found else "has found no message"
        yield _back(state._replace(intent=mine), place, session, f"{what}, and makes the upload its own")


def _who(place: Place) -> str:
    return f"{place.name} ({ACCOUNTS[place.account]})"


def _back(state: State, place: Place, session: Session, what: str) -> Step[State]:
    """The step is the last of its work: nothing but its account is locked any more."""
    locks = freed(state.locks, place.session)
    if session.is_heard:
        locks = put(locks, place.account, place.session)
    after = with_session(state, place.session, session._replace(at="on", wait=0), locks=locks)
    return Step(f"{_who(place)} {what}", after)
