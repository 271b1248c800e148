"""Other people's messages that carry a marker, as ``verify`` and ``rebuild`` name them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from worker.plain_text import plain
from worker.status.wording import count_of

if TYPE_CHECKING:
    from collections.abc import Iterator

_SHOWN = 20


def other_peoples(report: dict[str, Any]) -> Iterator[str]:
    """A line for each of the first of them; they are left alone, whatever they say."""
    for item in report["not_ours"][:_SHOWN]:
        messages = item["messages"] if "messages" in item else [item["message"]]
        why = item["why"] if "why" in item else item["what"]
        which = ", ".join(map(str, messages[:_SHOWN]))
        yield f"  not ours, and left alone: {plain(item['name'])} (message {which}): {why}"
    if report["not_ours_count"] > _SHOWN:
        yield f"  … and {count_of(report['not_ours_count'] - _SHOWN, 'more message')} like that"
