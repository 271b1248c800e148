"""What was posted, so that the ledger can be asked whether every byte of it is at the destination once."""

import hashlib
from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from worker.domain.marker import Marker, find_marker


@dataclass
class Contents:
    """Sets of several files, by the messages that carry them, and the bytes of everything we made ourselves."""

    sets: list[tuple[Path, ...]] = field(default_factory=list)
    copies: Counter[bytes] = field(default_factory=Counter)
    _bytes: dict[bytes, bytes] = field(default_factory=dict)

    def made(self, files: Iterable[Path]) -> bytes:
        """Remember the bytes of an archive; its content hash."""
        whole = b"".join(path.read_bytes() for path in files)
        digest = hashlib.sha256(whole).digest()
        self._bytes[digest] = whole
        return digest

    def posted_set(self, files: tuple[Path, ...]) -> None:
        """A set of several files stands in a source."""
        self.sets.append(files)
        self.copies[self.made(files)] += 1

    def expected(self, source_messages: list[dict]) -> Counter[bytes]:
        """Every content that was posted, and how often: sets as we know them, other files as the ledger has them."""
        in_sets = {path.name for files in self.sets for path in files}
        singles = (
            bytes.fromhex(message["sha256"])
            for message in source_messages
            if message["document_id"] and message["kind"] != "photo" and message["file_name"] not in in_sets
        )
        return self.copies + Counter(singles)

    def check_destination(self, messages: list[dict], expected: Counter[bytes]) -> dict[bytes, list[int]]:
        """The message ids of every content, in order; each there once, whole, and nothing else."""
        windows: dict[bytes, list[tuple[Marker, dict]]] = defaultdict(list)
        for message in messages:
            marker = find_marker(message["text"])
            assert marker is not None, f"an unmarked document at the destination: {message}"
            windows[marker.content_hash].append((marker, message))
        assert set(expected) - set(windows) == set(), "a content was lost"
        assert set(windows) - set(expected) == set(), "the destination holds bytes that nobody posted"
        return {digest: self._check_windows(digest, found) for digest, found in windows.items()}

    def _check_windows(self, digest: bytes, found: list[tuple[Marker, dict]]) -> list[int]:
        reached = 0
        for marker, message in sorted(found, key=lambda pair: pair[1]["id"]):
            assert marker.offset == reached, f"a part is doubled, missing or out of order: {marker}"
            reached += marker.length
            if marker.length == marker.total_size:
                assert message["sha256"] == digest.hex(), "other bytes than the marker says"
            else:
                cut = self._bytes[digest][marker.offset : marker.offset + marker.length]
                assert message["sha256"] == hashlib.sha256(cut).hexdigest(), (
                    "other bytes than the marker says"
                )
        assert reached == found[0][0].total_size, "a part is missing"
        return sorted(message["id"] for _, message in found)
