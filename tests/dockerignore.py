"""Which files reach a build: the rules of .dockerignore, as the engine reads them."""

import re
from dataclasses import dataclass
from pathlib import PurePosixPath


@dataclass(frozen=True, slots=True)
class Rule:
    """One line: what it means, and whether it brings back what an earlier line left out."""

    pattern: re.Pattern
    brings_back: bool


def rules(text: str) -> list[Rule]:
    """The lines that say something, in their order."""
    found = []
    for line in text.splitlines():
        # Only a hash in the first column begins a comment.
        if line.startswith("#") or not (stripped := line.strip()):
            continue
        brings_back = stripped.startswith("!")
        found.append(Rule(_pattern(stripped.removeprefix("!").strip()), brings_back))
    return found


def is_sent(path: str, known: list[Rule]) -> bool:
    """Whether this file is part of the build's context: the last line that means it, or a folder above it, wins."""
    sent = True
    here = PurePosixPath(path)
    names = [str(here), *(str(each) for each in here.parents if each != PurePosixPath())]
    for rule in known:
        if any(rule.pattern.fullmatch(name) for name in names):
            sent = rule.brings_back
    return sent


def _pattern(written: str) -> re.Pattern:
    # Leading and trailing slashes mean nothing: every pattern begins at the root of the context.
    parts = [part for part in written.strip("/").split("/") if part not in ("", ".")]
    made = ""
    for position, part in enumerate(parts):
        last = position == len(parts) - 1
        if part == "**":
            made += ".*" if last else "(?:.*/)?"
        else:
            made += _within_a_name(part) + ("" if last else "/")
    return re.compile(made)


def _within_a_name(part: str) -> str:
    made, position = "", 0
    while position < len(part):
        letter = part[position]
        if part.startswith("**", position):
            made += ".*"
            position += 1
        elif letter == "*":
            made += "[^/]*"
        elif letter == "?":
            made += "[^/]"
        elif letter == "[" and (end := part.find("]", position + 2)) > 0:
            made += part[position : end + 1]
            position = end
        elif letter == "\\" and position + 1 < len(part):
            position += 1
            made += re.escape(part[position])
        else:
            made += re.escape(letter)
        position += 1
    return made
