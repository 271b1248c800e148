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


@dataclass(frozen=True, slots=True)
class Listing:
    """The members of a set, and what was noticed on the way."""

    format: str
    entries: tuple[Entry, ...]
    entry_count: int
    total_size: int
    marks: frozenset[Mark]
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Completeness:
    """Whether the bytes of a set prove it whole. ``missing`` are indices of absent parts, as far as known."""

    complete: bool
    missing: tuple[int, ...] = ()
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Limits:
    """Bounds on parsing one set. Whatever lies beyond is cut and marked."""

    memory: int = 512 * 1024 * 1024
    cpu_seconds: int = 60
    wall_seconds: float = 60.0
    entries: int = 200_000
    output_bytes: int = 64 * 1024 * 1024
    # So much of the contents is unpacked and compared with its checksums; 0 where reads cost network.
    verify_bytes: int = 64 * 1024 * 1024
    picture_bytes: int = 2 * 1024 * 1024
