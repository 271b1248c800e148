"""What the model of the fleet keeps in mind: who holds what, what Telegram has, what the rows say.

Time goes in ticks. Between two of them any number of things happen in any order. A heartbeat is answered at each
tick; an owner trusts itself for a tick or two more, and Telegram keeps a silent connection for another. Real
times are longer and have the same order, which is all that the rules rest on.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable

DISCONNECT = 1
CALL_DEADLINE = 1
NOBODY = -1
# The process that a row names and that is no more: its successor on the same host is somebody else.
SOMEBODY_GONE = -2
# A clock that was set back makes a time that was written before it lie in a distant future.
DISTANT = 99
OPEN = 9
ACCOUNTS = "AB"
STRANGER = "a stranger"


@dataclass(frozen=True, slots=True)
class Protocol:
    """The rules in force. As they stand here they are the fleet's; each other value is a mistake to be found."""

    # A login has an epoch, a heartbeat and an end like any owner, and waits for the owner before it.
    login_is_a_lease: bool = True
    # A login writes down that the account is ready when its own connection is closed.
    login_saves_last: bool = True
    # How long a silent owner is waited for is counted by whoever waits, not read from the row.
    waits_by_own_clock: bool = True
    # A message counts as the fleet's if the fleet's accounts wrote it, not if it says so.
    marker_is_proven: bool = True
    # What an account sees of a channel is asked before anything is concluded from what it does not find.
    asks_for_sight: bool = True
    # Whoever takes an upload over asks once more what it sees, when it has looked.
    takers_ask_for_sight: bool = True
    # A person can end an upload that no account can finish.
    people_can_end_it: bool = True
    # Whoever takes an upload over lets one call deadline pass before it looks.
    lets_calls_end: bool = True
    # A silent owner is waited for until Telegram has dropped its connections, not only while it trusts itself.
    waits_for_the_wire: bool = True
    # Within a process only one work is at a content, whatever has become of its locks.
    has_lanes: bool = True
    # No intent is written beside another one or beside a package, whoever believes to hold the content's lock.
    has_one_intent: bool = True
    # How many ticks an owner trusts itself after a heartbeat.
    trust: int = 1

    @property
    def lease(self) -> int:
        """After so long without a heartbeat no connection of an owner is left."""
        return self.trust + DISCONNECT

    @property
    def patience(self) -> int:
        """How long a successor waits for that."""
        return self.lease if self.waits_for_the_wire else self.trust


@dataclass(frozen=True, slots=True)
class Scope:
    """How much there is: of everything the fleet has, or of a part that can be looked at by itself."""

    publishing: bool = True
    workers: int = 2
    logins: int = 0
    faults: int = 2
    clock_steps: tuple[str, ...] = ("ahead", "back")


class Session(NamedTuple):
    """One process's work with one account, by way of the connection that holds its locks."""

    at: str = "off"
    trust: int = 0
    # Whether the connection for locks stands.
    line: bool = False
    # Its connection to Telegram: none, OPEN, or how long Telegram still keeps it.
    wire: int = 0
    key: int = 0
    wait: int = 0
    # Whether that connection is gone at the server, and its locks with it, without anybody here having noticed.
    silent: bool = False

    @property
    def is_heard(self) -> bool:
        """Whether what it asks of its locks is answered."""
        return self.line and not self.silent


class Intent(NamedTuple):
    """The upload that was begun: whose it is, whose fence, what is known of its message."""

    account: int
    fence: int
    phase: str = "planned"
    message: str = ""
    # Accounts that were let in again since, and may not see what it sent.
    blind: frozenset[int] = frozenset()


class State(NamedTuple):
    # Processes: workers, then logins. Sessions: of each worker A and B, then the logins, which are for A.
    processes: tuple[str, ...]
    sessions: tuple[Session, ...]
    # Of each account: whom its row names, how long its mark has stood still, and by the database's clock, what
    # is left of the lease that stands in the row.
    rows: tuple[int, ...] = (NOBODY, NOBODY)
    still: tuple[int, ...] = (0, 0)
    left: tuple[int, ...] = (0, 0)
    # Which session holds the lock of A, of B, and of the content.
    locks: tuple[int, ...] = (NOBODY, NOBODY, NOBODY)
    banned: tuple[bool, ...] = (False, False)
    ready: tuple[bool, ...] = (True, True)
    # The session of A that is written down, and that of a login that was begun.
    key: int = 0
    pending_key: int = 0
    # What the accounts see of the archive at its source, and of all that the destination holds.
    sees_source: tuple[bool, ...] = (True, True)
    unseen: tuple[frozenset[str], ...] = (frozenset(), frozenset())
    # The archive, as the rows have it: unread, passed, ready, published, gone, failed.
    archive: str = "unread"
    intent: Intent | None = None
    package: str = ""
    # Telegram: messages that carry the content's marker, and calls that are under way to make one.
    messages: frozenset[str] = frozenset()
    calls: tuple[tuple[str, int], ...] = ()
    strangers_left: int = 1
    faults_left: int = 2


def beginning(scope: Scope) -> State:
    """Nothing has happened yet."""
    return State(
        processes=("up",) * scope.workers + ("new",) * scope.logins,
        sessions=(Session(),) * (2 * scope.workers + scope.logins),
        archive="unread" if scope.publishing else "none",
        strangers_left=int(scope.publishing),
        faults_left=scope.faults,
    )


class Place(NamedTuple):
    """Whose session it is."""

    session: int
    process: int
    account: int
    is_login: bool
    name: str


def places(scope: Scope) -> tuple[Place, ...]:
    """Every session that there may be."""
    found = [
        Place(2 * worker + account, worker, account, False, f"worker {worker + 1}")
        for worker in range(scope.workers)
        for account in range(2)
    ]
    for login in range(scope.logins):
        number = len(found)
        found.append(Place(number, scope.workers + login, 0, True, f"login {login + 1}"))
    return tuple(found)


def put(row: tuple, at: int, value: object) -> tuple:
    """The same with another value in this place."""
    return (*row[:at], value, *row[at + 1 :])


def with_session(state: State, number: int, session: Session, **more: object) -> State:
    """The same with another session in this place, and whatever else is different."""
    return state._replace(sessions=put(state.sessions, number, session), **more)


def freed(locks: tuple[int, ...], session: int) -> tuple[int, ...]:
    """The locks when this session's connection is gone."""
    return tuple(NOBODY if holder == session else holder for holder in locks)


def with_sessions_of(
    state: State, all_places: tuple[Place, ...], process: int, change: Callable[[Session], Session]
) -> State:
    """The same with every session of this process changed."""
    sessions = state.sessions
    for place in all_places:
        if place.process == process and sessions[place.session].at != "off":
            sessions = put(sessions, place.session, change(sessions[place.session]))
    return state._replace(sessions=sessions)


def process_name(scope: Scope, number: int) -> str:
    """A process as a story calls it."""
    return f"worker {number + 1}" if number < scope.workers else f"login {number - scope.workers + 1}"
