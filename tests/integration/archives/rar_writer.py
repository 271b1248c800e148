"""Writes RAR volumes of stored members: enough of both formats to test readers without the real tool."""

import struct
import zlib
from dataclasses import dataclass

MAGIC4 = b"Rar!\x1a\x07\x00"
MAGIC5 = b"Rar!\x1a\x07\x01\x00"


@dataclass
class Piece:
    """A member, or the part of one that lies in one volume."""

    path: str
    data: bytes
    size: int
    crc: int
    before: bool = False
    after: bool = False
    is_dir: bool = False


def pieces_per_volume(tree, room):
    """Cut the members so that each volume holds about ``room`` bytes of data."""
    volumes, current, used = [], [], 0
    for path, data in tree.items():
        if path.endswith("/"):
            current.append(Piece(path.rstrip("/"), b"", 0, 0, is_dir=True))
            continue
        crc, rest, before = zlib.crc32(data), data, False
        while True:
            take = rest[: max(0, room - used)]
            rest = rest[len(take) :]
            piece_crc = zlib.crc32(take) if rest else crc
            current.append(Piece(path, take, len(data), piece_crc, before, bool(rest)))
            used += len(take)
            if not rest:
                break
            volumes.append(current)
            current, used, before = [], 0, True
    return [*volumes, current]


def _block4(kind, flags, body, data=b""):
    head = struct.pack("<BHH", kind, flags, 7 + len(body)) + body
    return struct.pack("<H", zlib.crc32(head) & 0xFFFF) + head + data


def file4(piece, *, encrypted=False, packed=None):
    flags = (
        0x8000 | piece.before | piece.after << 1 | (0x4 if encrypted else 0) | (0xE0 if piece.is_dir else 0)
    )
    name = piece.path.replace("/", "\\").encode()
    flags |= 0 if name.isascii() else 0x200
    packed = len(piece.data) if packed is None else packed
    large = packed >= 1 << 32 or piece.size >= 1 << 32
    flags |= 0x100 if large else 0
    time = (12 << 11 | 30 << 5 | 5) | (44 << 9 | 3 << 5 | 9) << 16
    body = struct.pack(
        "<LLBLLBBHL",
        packed & 0xFFFFFFFF,
        piece.size & 0xFFFFFFFF,
        3,
        piece.crc,
        time,
        29,
        0x30,
        len(name),
        0o644,
    )
    body += struct.pack("<LL", packed >> 32, piece.size >> 32) if large else b""
    return _block4(0x74, flags, body + name, piece.data)


def rar4(tree, room=1 << 40, *, encrypted=False, new_names=False):
    """The volumes of a RAR 4 archive."""
    volumes = pieces_per_volume(tree, room)
    many = len(volumes) > 1
    made = []
    for number, pieces in enumerate(volumes):
        flags = 0x1 | (0x100 if number == 0 else 0) | (0x10 if new_names else 0)
        main = _block4(0x73, flags if many else 0, bytes(6))
        files = b"".join(file4(piece, encrypted=encrypted) for piece in pieces)
        made.append(MAGIC4 + main + files + end4(number, more=number < len(volumes) - 1, volume=many))
    return made


def end4(number=0, *, more=False, volume=False):
    flags = 0x4000 | more | (0x8 if volume else 0)
    return _block4(0x7B, flags, struct.pack("<H", number) if volume else b"")


def rar4_encrypted_names():
    return MAGIC4 + _block4(0x73, 0x80, bytes(6)) + bytes(range(200))


def vint(number):
    out = bytearray()
    while True:
        number, low = number >> 7, number & 0x7F
        out.append(low | (0x80 if number else 0))
        if not number:
            return bytes(out)


def block5(kind, flags, body, data=b"", *, data_size=None, extra=b""):
    size = len(data) if data_size is None else data_size
    has_data = kind == 2  # file blocks state the size of their data even when there is none
    head = vint(kind) + vint(flags | (2 if has_data else 0) | (1 if extra else 0))
    head += (vint(len(extra)) if extra else b"") + (vint(size) if has_data else b"") + body + extra
    checked = vint(len(head)) + head
    return struct.pack("<L", zlib.crc32(checked)) + checked + data


def file5(piece, *, data_size=None):
    name = piece.path.encode()
    flags = (8 if piece.before else 0) | (16 if piece.after else 0)
    body = (
        vint((1 if piece.is_dir else 0) | 2 | 4)
        + vint(piece.size)
        + vint(0o40755 if piece.is_dir else 0o100644)
    )
    body += struct.pack("<LL", 1_700_000_000, piece.crc) + vint(0) + vint(1) + vint(len(name)) + name
    return block5(2, flags, body, piece.data, data_size=data_size)


def end5(*, more=False):
    return block5(5, 0, vint(1 if more else 0))


def main5(number=None):
    if number is None:
        return block5(1, 0, vint(0))
    return block5(1, 0, vint(1 | (2 if number else 0)) + (vint(number) if number else b""))


def rar5(tree, room=1 << 40):
    """The volumes of a RAR 5 archive."""
    volumes = pieces_per_volume(tree, room)
    many = len(volumes) > 1
    made = []
    for number, pieces in enumerate(volumes):
        files = b"".join(file5(piece) for piece in pieces)
        end = end5(more=number < len(volumes) - 1)
        made.append(MAGIC5 + main5(number if many else None) + files + end)
    return made
