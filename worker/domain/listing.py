"""What is inside an archive, and what it turned out to be."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple


class Mark(StrEnum):
    """A fact about a set that a person should see. A marked set is archived all the same."""

    ENCRYPTED = "encrypted"  # members need a password
    ENCRYPTED_NAMES = "encrypted-names"  # even the listing needs a password
    CORRUPT = "corrupt"  # headers or data contradict themselves, or bytes are missing
    TRUNCATED = "truncated"  # the listing stops at its limit; ``entry_count`` goes on
    INCOMPLETE = "incomplete"  # parts are missing, doubled or foreign
    MISNAMED = "not-what-its-name-says"
    UNSUPPORTED = "unsupported"  # well-formed, but of a kind that is not read
    EMPTY = "empty"
    UNSAFE_PATHS = "unsafe-paths"  # absolute, climbing or control-character names
    LINKS = "links"  # symbolic or hard links
    BOMB = "bomb"  # unpacks to more than anything honest would
    TIME_LIMIT = "time-limit"
    MEMORY_LIMIT = "memory-limit"
    CRASHED = "parser-crashed"
    UNPROVEN = "unproven"  # nothing tells some of its parts from those of another archive
    UNVERIFIED = "unverified"  # some bytes were compared with nothing: damage in them has no other mark


class Entry(NamedTuple):
    """One member. A tuple, since an archive may have 200,000 of them and each is made on a hot path.

    ``modified`` is ISO 8601: without an offset where the format stores local time, ending in ``Z`` where it
    stores UTC. ``compressed_size`` is None where members are packed together.
    """

    path: str
    size: int
    compressed_size: int | None
    crc32: int | None
    modified: str | None
    is_dir: bool
    encrypted: bool


class Unchecked(StrEnum):
    """Why bytes of an archive were compared with nothing, so that damage in them would go unseen."""

    FORMAT = "the format keeps no checksum of these contents"
    NAMES = "the format keeps no checksum of these names"
    FIELDS = "header fields, comments and padding without a copy or a checksum"
    ENCRYPTED = "encrypted: checking takes the password"
    METHOD = "packed in a way that is not unpacked here"
    BOUND = "more than is unpacked to check an archive"
    STRAY = "bytes that belong to no member"


@dataclass(frozen=True, slots=True)
class Listing:
    """The members of a set, and what was noticed on the way.

    ``unchecked`` counts the bytes, by reason, for which the absence of a mark means nothing.
    """

    format: str
    entries: tuple[Entry, ...]
    entry_count: int
    total_size: int
    marks: frozenset[Mark]
    notes: tuple[str, ...] = ()
    unchecked: tuple[tuple[Unchecked, int], ...] = ()

    @property
    def candid_marks(self) -> frozenset[Mark]:
        """The marks, and one that says if their absence proves little. Most formats leave something open."""
        return self.marks | {Mark.UNVERIFIED} if self.unchecked else self.marks


class Evidence(StrEnum):
    """What speaks for a part being the one that belongs in its place."""

    NONE = "none"  # nothing in the format does, or asking would cost more than was allowed
    HEADERS = "headers"  # headers in it fit headers elsewhere in the set
    CONTENTS = "contents"  # bytes of it were unpacked, and match a checksum kept elsewhere


@dataclass(frozen=True, slots=True)
class Completeness:
    """Whether the bytes of a set prove it whole.

    ``missing`` are indices of absent parts, as far as known; ``reason`` is for a person. ``evidence`` says,
    for each part of a multi-part set in order, what was found. A set is never complete against the evidence,
    but it may be complete without evidence for every part: see :attr:`unproven`. ``undecided``: nothing
    speaks against it, and nothing in these bytes will ever say whether more must follow.
    """

    complete: bool
    missing: tuple[int, ...] = ()
    reason: str = ""
    evidence: tuple[Evidence, ...] = ()
    undecided: bool = False

    @property
    def unproven(self) -> tuple[int, ...]:
        """Places, from 0, of parts that could be another archive's for all that was read."""
        return tuple(place for place, found in enumerate(self.evidence) if found is Evidence.NONE)


@dataclass(frozen=True, slots=True)
class Limits:
    """Bounds on parsing one set. Whatever lies beyond is cut and marked."""

    memory: int = 512 * 1024 * 1024
    cpu_seconds: int = 60
    wall_seconds: float = 60.0
    entries: int = 200_000
    output_bytes: int = 64 * 1024 * 1024
    # So much of the contents a listing may compare with checksums; 0 where reads cost network.
    verify_bytes: int = 64 * 1024 * 1024
    # So much of the contents a proof may read where headers leave parts unproven. Small, since a proof mostly
    # runs on files that are still on a server.
    prove_bytes: int = 8 * 1024 * 1024
    picture_bytes: int = 2 * 1024 * 1024


# For parts that lie on a local disk: only time bounds what is read.
LOCAL = Limits(prove_bytes=64 * 1024**3, verify_bytes=512 * 1024 * 1024)
