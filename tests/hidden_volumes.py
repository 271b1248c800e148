"""RAR 5 volumes of which nothing but the salt can be read."""

import os
import zlib
from pathlib import Path


def hidden_volume(path: Path, salt: bytes, size: int = 2000) -> Path:
    """A volume that begins with an encryption header: all that follows is hidden."""
    fields = bytes([4, 0, 0, 0, 15]) + salt
    header = bytes([len(fields)]) + fields
    checksum = zlib.crc32(header).to_bytes(4, "little")
    path.write_bytes(b"Rar!\x1a\x07\x01\x00" + checksum + header + os.urandom(size))
    return path
