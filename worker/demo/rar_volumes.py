"""Writes RAR 5 volumes with stored members: no free tool does, and RAR sets are half of what is posted."""

from __future__ import annotations

import struct
import zlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

_MAGIC = b"Rar!\x1a\x07\x01\x00"
_MAIN, _FILE, _END = 1, 2, 5
_MODIFIED = 1_767_268_800


def rar_volumes(members: dict[str, bytes], room: int) -> list[bytes]:
    """The volumes of an archive whose members are cut where a volume holds ``room`` bytes of data."""
    volumes: list[list[bytes]] = [[]]
    for piece, ends_volume in _pieces(members, room):
        volumes[-1].append(piece)
        if ends_volume:
            volumes.append([])
    last = len(volumes) - 1
    return [
        _MAGIC + _main(number) + b"".join(blocks) + _block(_END, 0, _vint(int(number < last)))
        for number, blocks in enumerate(volumes)
    ]


def _pieces(members: dict[str, bytes], room: int) -> Iterator[tuple[bytes, bool]]:
    used = 0
    for path, data in members.items():
        start = 0
        while True:
            piece = data[start : start + room - used]
            goes_on = start + len(piece) < len(data)
            yield _file(path, data, piece, follows=start > 0, goes_on=goes_on), goes_on
            start += len(piece)
            used = 0 if goes_on else used + len(piece)
            if not goes_on:
                break


def _main(number: int) -> bytes:
    # A volume, which names its number unless it is the first one.
    return _block(_MAIN, 0, _vint(1 | (2 if number else 0)) + (_vint(number) if number else b""))


def _file(path: str, whole: bytes, piece: bytes, *, follows: bool, goes_on: bool) -> bytes:
    name = path.encode()
    # Every piece but the last carries its own checksum, the last one that of the whole member.
    checksum = zlib.crc32(piece if goes_on else whole)
    body = _vint(2 | 4) + _vint(len(whole)) + _vint(0o100644) + struct.pack("<LL", _MODIFIED, checksum)
    body += _vint(0) + _vint(1) + _vint(len(name)) + name
    return _block(_FILE, 2 | (8 if follows else 0) | (16 if goes_on else 0), body, piece)


def _block(kind: int, flags: int, body: bytes, data: bytes = b"") -> bytes:
    size = _vint(len(data)) if kind == _FILE else b""
    head = _vint(kind) + _vint(flags) + size + body
    checked = _vint(len(head)) + head
    return struct.pack("<L", zlib.crc32(checked)) + checked + data


def _vint(number: int) -> bytes:
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*out, number])
