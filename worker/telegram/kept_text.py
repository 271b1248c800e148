"""What others have written, as it can be kept."""

from __future__ import annotations


def clean(text: str | None) -> str:
    """Text as PostgreSQL can keep it: it knows every character but one, and no half of a pair."""
    whole = (text or "").replace("\0", "\ufffd")
    return whole if whole.isascii() else whole.encode(errors="replace").decode()
