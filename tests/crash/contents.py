"""The bytes that were posted, so that the ledger can be asked whether each of them is at the destination once."""

import hashlib
from collections import Counter, defaultdict
from collections.abc import Iterable
from pathlib import Path

from worker.domain.marker import Marker, find_marker


class Contents:
    """The files that a test has posted, by their hashes, and the contents that they make together."""

    def __init__(self) -> None:
        self._files: dict[str, Path] = {}

    def keep(self, path: Path) -> None:
        """A file that is posted somewhere."""
        self._files[hashlib.sha256(path.read_bytes()).hexdigest()] = path

    def expected(self, sets: Iterable[tuple[str, ...]]) -> dict[bytes, tuple[str, ...]]:
        """The content hash of each of these sets, which are named by the hashes of their files."""
        return {self._content_hash(parts): parts for parts in sets}

    def _content_hash(self, parts: tuple[str, ...]) -> bytes:
        return bytes.fromhex(parts[0]) if len(parts) == 1 else hashlib.sha256(self._whole(parts)).digest()

    def _whole(self, parts: tuple[str, ...]) -> bytes:
        return b"".join(self._files[sha256].read_bytes() for sha256 in parts)

    def check(self, messages: list[dict], expected: dict[bytes, tuple[str, ...]]) -> dict[bytes, list[int]]:
        """The message ids of every content, in order: each there once, whole, and nothing else is."""
        found: dict[bytes, list[tuple[Marker, dict]]] = defaultdict(list)
        for message in sorted(messages, key=lambda message: message["id"]):
            marker = find_marker(message["text"])
            assert marker is not None, f"an unmarked document at the destination: {message}"
            found[marker.content_hash].append((marker, message))
        assert set(expected) - set(found) == set(), "a content was lost"
        assert set(found) - set(expected) == set(), "the destination holds bytes that nobody posted"
        return {digest: self._check_parts(parts, found[digest]) for digest, parts in expected.items()}

    def _check_parts(self, parts: tuple[str, ...], found: list[tuple[Marker, dict]]) -> list[int]:
        windows = Counter((marker.offset, marker.length) for marker, _ in found)
        assert {window: n for window, n in windows.items() if n > 1} == {}, "a content was published twice"
        reached = 0
        for marker, message in found:
            assert marker.offset == reached, f"a part is missing or out of order: {marker}"
            reached += marker.length
            assert message["sha256"] == self._hash_of(parts, marker), "other bytes than the marker says"
        assert reached == found[0][0].total_size, "a part is missing"
        return [message["id"] for _, message in found]

    def _hash_of(self, parts: tuple[str, ...], marker: Marker) -> str:
        if len(parts) == 1 and marker.length == marker.total_size:
            return parts[0]
        window = self._whole(parts)[marker.offset : marker.offset + marker.length]
        return hashlib.sha256(window).hexdigest()
