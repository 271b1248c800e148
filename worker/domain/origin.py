"""Whose a marked message is. Anybody can write a marker, or copy one with all that stands around it. Pure.

Proven is a message whose code was made for this channel, this sender and this very document: nothing more has
to be asked. Where the code vouches for the words alone, or there is none but one of our accounts has sent the
message, its bytes have to be read and hashed before anything rests on them. Everything else is not ours,
whatever it says.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING

from worker.domain.marker_code import Under, is_coded

if TYPE_CHECKING:
    from collections.abc import Sequence

    from worker.domain.marker import Marker
    from worker.domain.telegram import Message


class Standing(Enum):
    """What is known of a marked message."""

    PROVEN = "proven"
    # Written by us; whether these are the bytes is to be found out.
    TO_BE_HASHED = "to be hashed"
    # Marked before there were codes, and nothing says by whom.
    OLD = "old"
    FOREIGN = "not ours"


@dataclass(frozen=True, slots=True)
class Authority:
    """What tells our messages from others in one channel: the keys of codes, and our accounts' user ids."""

    channel: int
    keys: Sequence[bytes]
    accounts: frozenset[int]

    def standing(self, message: Message, marker: Marker) -> Standing:
        """Whose this marked message is."""
        if message.document is None:
            return Standing.FOREIGN
        if not marker.code:
            return Standing.TO_BE_HASHED if self.names_us(message) else Standing.OLD
        if self._coded(message, marker, message.document.document_id):
            return Standing.PROVEN
        if self._coded(message, marker, 0):
            # A sender who is named is one of ours, and nobody else can have put other bytes in its place.
            return Standing.PROVEN if message.sender_id > 0 else Standing.TO_BE_HASHED
        return Standing.FOREIGN

    def is_sent_by_us(self, message: Message) -> bool:
        """Whether the message names one of our accounts as its sender, or names nobody."""
        return message.sender_id == 0 or self.names_us(message)

    def names_us(self, message: Message) -> bool:
        """Whether one of our accounts is known to have sent it, and nobody else can have changed it since."""
        # In a channel every administrator with that right may edit what another one has posted.
        return message.sender_id in self.accounts or (message.is_ours and not message.is_edited)

    def _coded(self, message: Message, marker: Marker, document_id: int) -> bool:
        # An account that posts in the name of its group has coded the marker for itself.
        senders = (0, *self.accounts) if message.sender_id == 0 else (message.sender_id,)
        return any(
            is_coded(self.keys, marker, Under(self.channel, sender, document_id)) for sender in senders
        )
