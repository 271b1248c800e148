"""The code in a marker: what only somebody who has the fleet's key could have written. Pure.

It covers every field of the marker, and with them what the line itself does not say: the channel it stands
in, who posted it, and the document it stands under. So a line that is copied to another channel, by another
person or onto other bytes has no valid code.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import unicodedata
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from worker.domain.marker import Marker

_SALT = b"archive fleet"
_PURPOSE = b"archive fleet marker"
_CODE_BYTES = 12


@dataclass(frozen=True, slots=True)
class Under:
    """What a marker stands under: Telegram's ids of the channel, of who posted it, and of the document.

    ``sender`` is 0 where messages are the channel's own. ``document`` is 0 where the server made it known
    only after the message was sent.
    """

    channel: int
    sender: int
    document: int


def marker_key(secret_key: bytes) -> bytes:
    """The key for codes that belongs to a secret key; HKDF with SHA-256. It tells nothing about that key."""
    extracted = hmac.digest(_SALT, secret_key, hashlib.sha256)
    return hmac.digest(extracted, _PURPOSE + b"\x01", hashlib.sha256)


def code_of(key: bytes, marker: Marker, under: Under) -> str:
    """The code of this marker in this place."""
    numbers = (
        under.channel,
        under.sender,
        under.document,
        marker.total_size,
        marker.offset,
        marker.length,
        marker.file_index,
        marker.file_size,
        marker.source_channel,
        marker.source_message,
        marker.source_document,
    )
    said = f"{marker.content_hash.hex()} {' '.join(map(str, numbers))} {_letters(marker.file_name)}"
    digest = hmac.digest(key, said.encode(), hashlib.sha256)
    return base64.urlsafe_b64encode(digest[:_CODE_BYTES]).decode()


def is_coded(keys: Iterable[bytes], marker: Marker, under: Under) -> bool:
    """Whether the marker's code was made with one of these keys for this place."""
    return any(hmac.compare_digest(code_of(key, marker, under), marker.code) for key in keys)


def _letters(name: str) -> str:
    """What stays of a name when a server normalises, trims or replaces what it does not like in texts."""
    return "".join(filter(str.isalnum, unicodedata.normalize("NFKD", name)))
