"""What the server accepts as a part of a file and as a range to read. Pure: numbers in, the refusal out."""

from __future__ import annotations

from itertools import pairwise

KIB = 1024
MIB = 1024 * KIB
MAX_PART = 512 * KIB
# Up to here a file goes up by upload.saveFilePart, above it by upload.saveBigFilePart.
SMALL_FILE = 10 * MIB
PARTS, PARTS_PREMIUM = 4000, 8000


def max_parts(*, premium: bool) -> int:
    return PARTS_PREMIUM if premium else PARTS


def is_part_size(size: int) -> bool:
    """A whole number of KiB that divides 512 KiB."""
    return size > 0 and size % KIB == 0 and MAX_PART % size == 0


def part_refusal(  # noqa: PLR0911 - one return per rule reads best
    part: int, size: int, *, limit: int, total: int | None, known: int | None
) -> str:
    """Return why a part is refused, empty if it is not.

    ``total`` is how many parts the file will have (None if the client need not say), ``known`` the size of a
    part that came before and is not the last.
    """
    if size == 0:
        return "FILE_PART_EMPTY"
    if size > MAX_PART:
        return "FILE_PART_TOO_BIG"
    if total is not None and not 0 < total <= limit:
        return "FILE_PARTS_INVALID"
    if not 0 <= part < (limit if total is None else total):
        return "FILE_PART_INVALID"
    may_be_last = total is None or part == total - 1
    if not may_be_last and not is_part_size(size):
        return "FILE_PART_SIZE_INVALID"
    if known is not None and (size > known if may_be_last else size != known):
        return "FILE_PART_SIZE_CHANGED"
    return ""


def file_refusal(parts: dict[int, int], count: int, *, big: bool) -> str:
    """Return why an upload cannot become a file: a missing part, or sizes that do not fit together."""
    for part in range(count):
        if part not in parts:
            return f"FILE_PART_{part}_MISSING"
    sizes = [parts[part] for part in range(count)]
    if not big and sum(sizes) > SMALL_FILE:
        return "FILE_PARTS_INVALID"
    full = sizes[:-1]
    if any(not is_part_size(size) for size in full) or any(a != b for a, b in pairwise(full)):
        return "FILE_PART_SIZE_INVALID"
    if full and sizes[-1] > full[0]:
        return "FILE_PART_SIZE_INVALID"
    return ""


def range_refusal(offset: int, limit: int, *, precise: bool) -> str:
    """Return why a range of a file cannot be read, empty if it can."""
    step = KIB if precise else 4 * KIB
    if offset < 0 or offset % step:
        return "OFFSET_INVALID"
    if limit <= 0 or limit > MIB or limit % step:
        return "LIMIT_INVALID"
    if not precise and MIB % limit:
        return "LIMIT_INVALID"
    if offset // MIB != (offset + limit - 1) // MIB:
        return "LIMIT_INVALID"
    return ""
