"""What the operations chat is told, as text. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from worker.domain.phone import masked_phone
from worker.status.wording import count_of, duration, size

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from worker.store.accounts import Account
    from worker.store.progress import StepProgress

# Telegram takes 4096 UTF-16 units, of which a character may need two.
_MOST_CHARACTERS = 2000
_MOST_LINES = 10
_MOST_NAME = 60
_MOST_REASON = 110
_UNUSABLE = {"banned": "is banned by Telegram", "frozen": "is frozen by Telegram"}
_OUTCOMES = ("published", "duplicate", "waiting", "failed")


def progress_text(account: Account, steps: Sequence[StepProgress], ended: Mapping[str, int]) -> str:
    """What the account is doing; whole percents, so that it changes no more often than people care."""
    lines = [
        f"{_cut(step.set_name, _MOST_NAME)}: {step.step} {_percent(step)} % of {size(step.total)}"
        for step in steps
    ]
    return _text(f"▶ {_who(account)}", lines or ["looks for new archives"], _tally(ended))


def summary_text(account: Account, ending: str, ended: Mapping[str, int], seconds: float) -> str:
    """What the account has done, once it has stopped."""
    return _text(
        f"■ {_who(account)}: {_cut(ending, _MOST_REASON)} after {duration(seconds)}", [], _tally(ended)
    )


def given_up_text(account: Account, sets: Sequence[tuple[str, str]]) -> str:
    """Sets (name and reason) that nobody will try again unless a person asks for it."""
    lines = [f"{_cut(name, _MOST_NAME)}: {_cut(reason, _MOST_REASON)}" for name, reason in sets]
    return _text(f"⚠ {_who(account)} gave up {count_of(len(sets), 'archive')}", lines, "")


def unusable_text(account: Account, state: str, reason: str) -> str:
    """An account that stands still until a person acts."""
    told = _UNUSABLE.get(state, "has to be logged in again")
    return _text(f"⚠ {_who(account)} {told}", [_cut(reason, _MOST_REASON)], "")


def _who(account: Account) -> str:
    masked = masked_phone(account.phone)
    return f"{_cut(account.display_name, _MOST_NAME)} ({masked})" if account.display_name else masked


def _percent(step: StepProgress) -> int:
    return 100 * step.done // step.total if step.total else 100


def _tally(ended: Mapping[str, int]) -> str:
    told = [f"{ended[outcome]:,} {outcome}" for outcome in _OUTCOMES if ended.get(outcome)]
    return "so far: " + ", ".join(told) if told else ""


def _text(head: str, lines: Sequence[str], foot: str) -> str:
    shown = list(lines[:_MOST_LINES])
    if len(lines) > _MOST_LINES:
        shown.append(f"and {len(lines) - _MOST_LINES:,} more")
    return _cut("\n".join(part for part in (head, *shown, foot) if part), _MOST_CHARACTERS)


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else text[: most - 1] + "…"
