"""Which pace applies to a call. Every number is a setting; the defaults keep clear of what Telegram tolerates."""

from __future__ import annotations

from collections.abc import Mapping  # noqa: TC003  # a dataclass field
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING

from worker.flow.pacing import Adaptation, Pace

if TYPE_CHECKING:
    from worker.flow.governor_state import Call

SEND = "messages.sendMessage"
HISTORY = "messages.getHistory"

_PACES = MappingProxyType(
    {
        HISTORY: Pace(30),
        "messages.search": Pace(20),
        "contacts.getContacts": Pace(5, burst=1),
        SEND: Pace(30),
        "channels.getParticipants": Pace(20),
    }
)
_CLASSES = MappingProxyType({"messages.sendMedia": SEND, "messages.sendMultiMedia": SEND})


@dataclass(frozen=True, slots=True)
class Buckets:
    """The paces that one call is charged to: its method class, and perhaps its chat as well."""

    name: str
    pace: Pace
    chat_pace: Pace | None = None


@dataclass(frozen=True, slots=True)
class Limits:
    """Soft limits per account and method class, in calls per minute."""

    paces: Mapping[str, Pace] = field(default=_PACES)
    per_chat: Mapping[str, Pace] = field(default=MappingProxyType({HISTORY: Pace(30)}))
    classes: Mapping[str, str] = field(default=_CLASSES)
    other: Pace = Pace(60, burst=10)
    premium: Mapping[str, float] = field(default=MappingProxyType({SEND: 2.0}))
    adaptation: Adaptation = Adaptation()

    def buckets(self, call: Call) -> Buckets:
        """The paces of this call."""
        name = self.classes.get(call.method, call.method)
        pace = self.paces.get(name, self.other)
        if call.premium:
            pace = pace.times(self.premium.get(name, 1.0))
        return Buckets(name, pace, self.per_chat.get(name) if call.chat else None)
