"""The identity of an archive: the SHA-256 over its parts in order."""

from __future__ import annotations

_BYTES = 32


def lock_key(content_hash: bytes) -> int:
    """The advisory lock of a content hash: its first eight bytes, big-endian, signed."""
    if len(content_hash) != _BYTES:
        raise ValueError(f"a content hash has {_BYTES} bytes, not {len(content_hash)}")
    return int.from_bytes(content_hash[:8], "big", signed=True)
