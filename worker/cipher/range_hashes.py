"""SHA-256 of many ranges at once, on the widest registers where the processor has them."""

from __future__ import annotations

import hashlib
from itertools import groupby
from typing import TYPE_CHECKING

from worker.cipher.native import native

if TYPE_CHECKING:
    from collections.abc import Sequence

# What the extension takes at once: so many ranges of one length, whole chunks.
SIDE_BY_SIDE = 16
_CHUNK = 64
_is_wide = native is not None and native.supported("hash")


def sha256_each(ranges: Sequence[memoryview]) -> list[bytes]:
    """The hash of each range, in order."""
    digests: list[bytes] = []
    for length, alike in groupby(ranges, key=len):
        rest = list(alike)
        while _is_wide and length % _CHUNK == 0 and len(rest) >= SIDE_BY_SIDE:
            digests += native.hash(rest[:SIDE_BY_SIDE])
            rest = rest[SIDE_BY_SIDE:]
        digests += [hashlib.sha256(each).digest() for each in rest]
    return digests
