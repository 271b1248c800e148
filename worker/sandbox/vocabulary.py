"""What the TL reader of this process has to understand beyond what a client has to.

The library's registry of constructors is one per process. A client and a server read it differently, so this
is installed when a server starts, never on import.
"""

from __future__ import annotations

from typing import Any

from pyrogram import raw
from pyrogram.raw.core import Int, List, TLObject, Vector

from worker.sandbox.layers import older


class ObjectVector(Vector):  # type: ignore[misc]  # the library's classes are untyped
    """Vectors in queries hold objects unless the query says what else.

    The library guesses the kind from the bytes that are left, which suits the answers a client reads but
    takes a list of ``inputMessageID`` at the end of a query for a list of numbers.
    """

    @classmethod
    def read(cls, data: Any, t: Any = None, *_: Any) -> List:
        count = Int.read(data)
        return List((t or TLObject).read(data) for _ in range(count))


def install() -> None:
    """Make this process read like a server."""
    raw.all.objects[Vector.ID] = ObjectVector
    raw.all.objects.update(older.readers())
