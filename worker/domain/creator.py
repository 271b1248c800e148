"""Who made what is in an archive, and under which tags it is found, as far as its posting tells."""

from __future__ import annotations

import re
import unicodedata
from itertools import islice
from typing import TYPE_CHECKING

from worker.domain.composed import composed

if TYPE_CHECKING:
    from collections.abc import Iterator

_MONTHS = """
january february march april may june july august september october november december
jan feb mar apr jun jul aug sep sept oct nov dec
januar februar märz maerz mai juni juli oktober dezember
"""
_MONTH = "|".join(sorted(_MONTHS.split(), key=len, reverse=True))
# Text made of nothing but month names, numbers, quarters and separators says when, not who. They are taken
# one by one: an expression that may repeat what repeats tries every way to part a row of digits.
_OF_A_DATE = re.compile(
    rf"(?:{_MONTH})\b|q[1-4]\b|[0-9]+(?:st|nd|rd|th)?|[\s.,/_\-\u2013\u2014]+", re.IGNORECASE
)
# Looked for where a row of spaces begins, not at each space of it.
_DASH = re.compile(r"(?<!\s)\s+[-\u2013\u2014]\s+")
_OPENING = re.compile(r"[\[(【{]")
_CLOSING = re.compile(r"[\])】}]")
_DECORATION = re.compile(r"[|•·~*=<>«»\"“”]+|@\w+|https?://\S+|t\.me/\S+", re.IGNORECASE)
_FILLER = re.compile(
    r"\b(?:official|archives?|channel|backup|uploads?|collection|group|chat|vip|free)\b", re.IGNORECASE
)
# Beside letters and digits: underscores, and what joins or parts letters unseen.
_WITHIN = "_\u200c\u200d"
_GENERIC_TOPICS = {"general", "main", "chat", "other", "misc"}
MAX_CREATOR = 80
# Tags are looked up through an index, which holds no entry of a few thousand bytes.
MAX_TAG = 100
MAX_TAGS = 100


def creator_of(*, topic_name: str | None, archive_name: str, channel_title: str) -> str | None:
    """The topic's name, else "Creator - Title" in the archive's name, else the channel's cleaned title."""
    topic = _tidy(topic_name or "")
    if topic and topic.casefold() not in _GENERIC_TOPICS and not is_date(topic):
        return topic
    pieces = _DASH.split(archive_name.replace("_", " "), maxsplit=1)
    if len(pieces) == 2:
        named = _tidy(_without_brackets(pieces[0]))
        if named and not is_date(named):
            return named
    return clean_title(channel_title)


def clean_title(title: str) -> str | None:
    """A channel's title without symbols, links and words that every channel has; None if nothing is left."""
    bare = _tidy(_DECORATION.sub(" ", _without_brackets(title)))
    short = _tidy(_FILLER.sub(" ", bare)).strip(" -\u2013\u2014:,.")
    name = short or bare
    return name if name and not is_date(name) else None


def _without_brackets(text: str) -> str:
    """The text without whatever stands between an opening bracket and the next closing one."""
    pieces: list[str] = []
    at = 0
    while opening := _OPENING.search(text, at):
        closing = _CLOSING.search(text, opening.end())
        if closing is None:
            break
        pieces.append(text[at : opening.start()])
        at = closing.end()
    return " ".join([*pieces, text[at:]])


def is_date(text: str) -> bool:
    """Whether the text only names a time: a month, a year, a date, a quarter."""
    text = text.strip()
    at = 0
    while found := _OF_A_DATE.match(text, at):
        at = found.end()
    return 0 < at == len(text)


def tags_of(*, category: str | None, caption: str) -> tuple[str, ...]:
    """The channel's category, then the caption's hashtags, folded, each once, in order."""
    found = [category.strip()] if category and category.strip() else []
    found += islice(_hashtags(composed(caption)), MAX_TAGS)
    return tuple(dict.fromkeys(composed(tag).casefold()[:MAX_TAG] for tag in found))


def _hashtags(caption: str) -> Iterator[str]:
    at = 0
    while (sign := caption.find("#", at)) >= 0:
        before = caption[sign - 1 : sign]
        at = sign + 1
        if before in ("#", "&") or (before and _in_word(before)):
            continue
        while at < len(caption) and _in_word(caption[at]):
            at += 1
        tag = caption[sign + 1 : at]
        if tag and not tag.isdigit():
            yield tag


def _in_word(character: str) -> bool:
    """Letters, digits, and the marks without which words of many scripts fall apart."""
    return character.isalnum() or character in _WITHIN or unicodedata.category(character).startswith("M")


def _tidy(text: str) -> str:
    """Drop emoji, symbols and invisible characters; one space between words."""
    kept = (c if unicodedata.category(c)[0] not in "SC" or c in "+$&" else " " for c in text)
    return " ".join("".join(kept).split())[:MAX_CREATOR].strip()
