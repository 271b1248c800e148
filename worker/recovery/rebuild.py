"""Making the index anew from what a destination's own messages say.

The markers carry everything: which bytes each message holds, the files they were, and the documents those
came from. Messages are read in order; a content's windows are held until they are complete, and become a
package then. What is known already stays as it is, so that a rebuilding that was interrupted is simply begun
again.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

from worker.recovery.adopting import Adopting, Outcome, go_through
from worker.recovery.authority import authority_in
from worker.recovery.sight import require_whole_history
from worker.store.channels import channel_ref

if TYPE_CHECKING:
    from collections.abc import Sequence

    from worker.recovery.errand import Errand

_SHOWN = 1000
_ACCEPT = "if only your own accounts could post there, run: worker rebuild --accept-old-markers"


@dataclass(frozen=True, slots=True)
class LeftOut:
    """Messages that became no package, and why."""

    name: str
    messages: tuple[int, ...]
    why: str


@dataclass(slots=True)
class Rebuilt:
    """What a rebuilding came to. ``not_ours`` are other people's messages: nothing that had to be written."""

    messages: int = 0
    marked: int = 0
    packages: int = 0
    known: int = 0
    left_out: list[LeftOut] = field(default_factory=list)
    left_out_count: int = 0
    not_ours: list[LeftOut] = field(default_factory=list)
    not_ours_count: int = 0

    def tell(self, outcome: Outcome, name: str, messages: Sequence[int], why: str) -> None:
        match outcome:
            case Outcome.ADOPTED:
                self.packages += 1
            case Outcome.MEANWHILE:
                pass
            case Outcome.NOT_OURS:
                self.not_ours_count += 1
                if len(self.not_ours) < _SHOWN:
                    self.not_ours.append(LeftOut(name, tuple(messages), why))
            case _:
                self._leave_out(LeftOut(name, tuple(messages), _why(outcome, why)))

    def _leave_out(self, item: LeftOut) -> None:
        self.left_out_count += 1
        if len(self.left_out) < _SHOWN:
            self.left_out.append(item)


def _why(outcome: Outcome, why: str) -> str:
    match outcome:
        case Outcome.BEGUN:
            return "its content is being published"
        case Outcome.DOUBLED:
            return "its content is published by other messages"
        case Outcome.OLD:
            return f"{why} — {_ACCEPT}"
        case _:
            return why


async def rebuild(errand: Errand) -> dict[str, Any]:
    """Write down every package that lies in channel ``channel``.

    ``accept_old``: a person vouches for messages that were marked before markers had codes.
    """
    deps, channel_id = errand.deps, int(errand.arguments["channel"])
    ref = await channel_ref(deps.database, deps.account.id, channel_id)
    await require_whole_history(deps, channel_id, ref)
    rebuilt = Rebuilt()
    authority = await authority_in(deps, ref)
    trust_old = bool(errand.arguments.get("accept_old"))
    adopting = Adopting(deps, channel_id, authority, rebuilt, trust_old=trust_old)
    await go_through(adopting, ref, 0, lambda done, total: errand.counter.progress("messages", done, total))
    rebuilt.messages, rebuilt.marked, rebuilt.known = adopting.messages, adopting.marked, adopting.known
    return asdict(rebuilt)
