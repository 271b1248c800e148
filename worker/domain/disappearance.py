"""How many packages may vanish from a destination at once before a person is asked. Pure."""

from __future__ import annotations

_MOST = 20
_ONE_IN = 100


def most_at_once(packages: int) -> int:
    """So many of a destination's packages are withdrawn without asking: 1 %, and never more than 20.

    A single one is always somebody's deletion. A cleared history, or a channel that drops its oldest messages
    because it is full, takes many.
    """
    return max(1, min(_MOST, packages // _ONE_IN))
