"""Phone numbers as they may be shown: enough to tell one's own accounts apart, too little to call."""

from __future__ import annotations

import re

_DOTS = "•" * 7
_SHORTEST = 7


def masked_phone(phone: str) -> str:
    """The first digit and the last two; the number of dots is always the same."""
    digits = [character for character in phone if character.isdigit()]
    if len(digits) < _SHORTEST:
        return f"+{_DOTS}"
    return f"+{digits[0]}{_DOTS}{digits[-2]}{digits[-1]}"


def international(phone: str) -> str | None:
    """The number as Telegram wants it, country code first; None if it cannot be one."""
    digits = "".join(character for character in phone if character not in " -()./")
    return digits if re.fullmatch(r"\+[1-9][0-9]{6,14}", digits) else None


def looks_like_phone(text: str) -> bool:
    """Whether a person may have meant a phone number by this."""
    return text.startswith("+") or (text.isdigit() and len(text) >= _SHORTEST)
