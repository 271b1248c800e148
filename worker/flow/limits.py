"""The governor's rules, from the settings: which pace applies to a call, and what follows from a flood."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from worker.config.settings import RateLimitSettings
from worker.domain.calls import Adaptation, Buckets, Escalation, Pace
from worker.flow.backoff import Backoff

if TYPE_CHECKING:
    from collections.abc import Mapping

    from worker.domain.calls import Call, Flood

SEND = "messages.sendMessage"
HISTORY = "messages.getHistory"
# What is sent counts as a message, whatever it carries.
_CLASSES = {"messages.sendMedia": SEND, "messages.sendMultiMedia": SEND}
_RELAXED: dict[str, Any] = {"other": Pace(1_000_000, burst=1000), "paces": {}, "per_chat": {}}


@dataclass(frozen=True, slots=True)
class Limits:
    """Soft limits per account and method class, the rests after floods, and the retries of a read."""

    other: Pace
    paces: Mapping[str, Pace]
    per_chat: Mapping[str, Pace]
    premium: Mapping[str, float]
    rest: tuple[float, float]
    escalation: Escalation
    backoff: Backoff
    adaptation: Adaptation

    @classmethod
    def of(cls, settings: RateLimitSettings) -> Limits:
        """The rules that the settings ask for."""
        if settings.profile == "relaxed":
            return replace(cls.of(settings.model_copy(update={"profile": "telegram"})), **_RELAXED)
        history = Pace(settings.get_history_per_min)
        return cls(
            other=Pace(settings.other_calls_per_min, burst=10),
            paces={
                HISTORY: history,
                SEND: Pace(settings.send_message_per_min),
                "messages.search": Pace(settings.search_per_min),
                "contacts.getContacts": Pace(settings.get_contacts_per_min, burst=1),
                "channels.getParticipants": Pace(settings.get_participants_per_min),
            },
            per_chat={HISTORY: history},
            premium={SEND: settings.premium_factor},
            rest=(settings.flood_wait_buffer_min_secs, settings.flood_wait_buffer_max_secs),
            escalation=Escalation(
                count=settings.flood_wait_escalation_count,
                within=60.0 * settings.flood_wait_escalation_window_mins,
                extra=settings.flood_wait_escalation_extra_secs,
            ),
            backoff=Backoff(
                first=settings.initial_backoff_ms / 1000,
                factor=settings.backoff_multiplier,
                cap=settings.max_backoff_ms / 1000,
                jitter=settings.jitter_factor,
                retries=settings.max_retries,
            ),
            adaptation=Adaptation(),
        )

    def buckets(self, call: Call) -> Buckets:
        """The paces of this call."""
        name = _CLASSES.get(call.method, call.method)
        pace = self.paces.get(name, self.other)
        if call.premium:
            pace = pace.times(self.premium.get(name, 1.0))
        return Buckets(name, pace, self.per_chat.get(name) if call.chat else None)

    def hold(self, flood: Flood, draw: float) -> float:
        """Seconds from a refusal to the next call; ``draw`` in 0…1 spreads those who wait alike."""
        least, most = self.rest
        # Drawing from the first half leaves the other half for the way to the database and back.
        return flood.seconds + least + (most - least) * draw / 2


DEFAULT = Limits.of(RateLimitSettings())
