"""What recovery found, and what it did about each: counted in full, listed as far as anybody would read."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

_LISTED = 100


class Kind(StrEnum):
    """What a finding is about, in the order in which a report names them."""

    RUN = "runs of dead workers"
    CLAIM = "claims of dead workers"
    FOLDER = "files of dead workers"
    SPACE = "disk space promised to dead workers"
    UPLOAD = "begun uploads"
    PACKAGE = "packages"
    MESSAGE = "messages"
    METADATA = "pending metadata"
    ACCOUNT = "accounts"


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing, and what became of it."""

    kind: Kind
    what: str
    outcome: str


@dataclass(slots=True)
class Findings:
    """Collects findings; bounded, however much is wrong."""

    listed: list[Finding] = field(default_factory=list)
    counts: Counter[tuple[Kind, str]] = field(default_factory=Counter)

    def note(self, kind: Kind, what: str, outcome: str) -> None:
        """Keep one finding; ``outcome`` begins with a word or two that others share."""
        self.counts[kind, outcome.split(":", 1)[0]] += 1
        if len(self.listed) < _LISTED:
            self.listed.append(Finding(kind, what, outcome))

    def add(self, kind: Kind, outcome: str, count: int) -> None:
        """Keep so many findings that have no names worth listing."""
        if count:
            self.counts[kind, outcome] += count

    def merge(self, other: Findings) -> None:
        """Take in what somebody else found."""
        self.counts.update(other.counts)
        self.listed.extend(other.listed[: _LISTED - len(self.listed)])

    @classmethod
    def of_document(cls, document: Mapping[str, Any]) -> Findings:
        """What another process found, out of its ``document``."""
        listed = [
            Finding(Kind[item["kind"].upper()], item["what"], item["outcome"]) for item in document["listed"]
        ]
        counts = Counter(
            {
                (Kind[kind.upper()], outcome): count
                for kind, outcomes in document["counts"].items()
                for outcome, count in outcomes.items()
            }
        )
        return cls(listed, counts)

    def document(self) -> dict[str, object]:
        """For ``--json``."""
        kinds: dict[str, dict[str, int]] = {}
        for (kind, outcome), count in self.counts.items():
            kinds.setdefault(kind.name.lower(), {})[outcome] = count
        listed = [
            {"kind": item.kind.name.lower(), "what": item.what, "outcome": item.outcome}
            for item in self.listed
        ]
        return {"counts": kinds, "listed": listed}
