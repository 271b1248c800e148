"""A person's wish that the fleet, an account or a channel should rest."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable


@dataclass(frozen=True, slots=True)
class Pause:
    """What rests, for how long from now, and who wished it; without account and channel, everything does."""

    account: int | None = None
    channel: int | None = None
    seconds_left: float | None = None
    by: str = ""

    def covers(self, account: int, channel: int | None) -> bool:
        """Whether work of this account, perhaps on this channel, has to rest."""
        return self.account in {None, account} and (self.channel is None or self.channel == channel)


def in_the_way(pauses: Iterable[Pause], account: int, channel: int | None) -> Pause | None:
    """The pause that lasts longest among those that cover the work; None if it may go on."""
    covering = [pause for pause in pauses if pause.covers(account, channel)]
    return max(covering, key=lambda pause: _length(pause.seconds_left), default=None)


def resting_channels(pauses: Iterable[Pause], account: int) -> list[int]:
    """The channels from which this account begins nothing."""
    return sorted(
        {
            pause.channel
            for pause in pauses
            if pause.channel is not None and pause.covers(account, pause.channel)
        }
    )


def _length(seconds: float | None) -> float:
    return float("inf") if seconds is None else seconds
