"""What a file name says about the archive it belongs to: format, numbering scheme, place in the set."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from enum import StrEnum

from worker.domain.composed import composed

# In a spanned zip the part called .zip carries the directory and comes last, however many .zNN precede it.
LAST = 10**9


class ArchiveFormat(StrEnum):
    """The container, as its name spells it."""

    ZIP = "zip"
    RAR = "rar"
    SEVEN_ZIP = "7z"
    TAR = "tar"
    TAR_GZ = "tar.gz"
    TAR_BZ2 = "tar.bz2"
    TAR_XZ = "tar.xz"
    TAR_ZST = "tar.zst"


class Scheme(StrEnum):
    """How the parts of one archive are numbered."""

    SINGLE = "single"
    RAR_PARTS = "part"  # name.part1.rar, name.part2.rar
    RAR_LEGACY = "legacy"  # name.rar, name.r00, name.r01
    ZIP_SPANNED = "spanned"  # name.z01, name.z02, name.zip
    NUMBERED = "numbered"  # name.7z.001, name.7z.002: plain slices of one file


@dataclass(frozen=True, slots=True)
class PartName:
    """One recognised file name.

    ``index`` is the place in the set, from 0. ``anchored`` is false for names like ``report.r12`` that mean
    something else unless the first volume stands beside them.
    """

    base: str
    format: ArchiveFormat
    scheme: Scheme
    index: int
    digits: str = ""
    anchored: bool = True
    ending: str = ""  # what follows the base, as it was spelt

    @property
    def family(self) -> tuple[str, str]:
        """Names that may belong together share this key, whatever their case and Unicode form."""
        folded = composed(composed(self.base).casefold())
        kind = self.format.value
        if self.scheme in (Scheme.RAR_PARTS, Scheme.NUMBERED):
            kind = f"{kind}.{self.scheme.value}"
        return folded, kind


_FLAGS = re.IGNORECASE | re.DOTALL
_RAR_PART = re.compile(r"(?P<base>.*)\.part(?P<digits>[0-9]{1,5})\.rar", _FLAGS)
_NUMBERED = re.compile(r"(?P<base>.*)\.(?P<format>zip|7z|rar)\.(?P<digits>[0-9]{3,5})", _FLAGS)
# After .r99 the RAR tools go on with .s00; .z is left to zip.
_RAR_CONTINUED = re.compile(r"(?P<base>.+)\.(?P<letter>[r-y])(?P<digits>[0-9]{2})", _FLAGS)
_ZIP_CONTINUED = re.compile(r"(?P<base>.+)\.z(?P<digits>[0-9]{2,5})", _FLAGS)
_SINGLE = re.compile(r"(?P<base>.*?)\.(?P<ext>tar\.(?:gz|bz2|xz|zst)|tgz|tar|zip|rar|7z)", _FLAGS)


def recognise(file_name: str) -> PartName | None:
    """Read a file name; ``None`` says that it is no archive's name."""
    name = file_name.strip()
    found = _multi_part(name) or _continuation(name) or _single(name)
    return found and replace(found, ending=name[len(found.base) :])


def _multi_part(name: str) -> PartName | None:
    match = _RAR_PART.fullmatch(name)
    if match and int(match["digits"]) > 0:
        digits = match["digits"]
        return PartName(match["base"], ArchiveFormat.RAR, Scheme.RAR_PARTS, int(digits) - 1, digits)
    match = _NUMBERED.fullmatch(name)
    if match and int(match["digits"]) > 0:
        digits = match["digits"]
        form = ArchiveFormat(match["format"].lower())
        return PartName(match["base"], form, Scheme.NUMBERED, int(digits) - 1, digits)
    return None


def _continuation(name: str) -> PartName | None:
    match = _RAR_CONTINUED.fullmatch(name)
    if match:
        rank = (ord(match["letter"].lower()) - ord("r")) * 100 + int(match["digits"])
        form, scheme, index = ArchiveFormat.RAR, Scheme.RAR_LEGACY, rank + 1
        return PartName(match["base"], form, scheme, index, match["digits"], anchored=False)
    match = _ZIP_CONTINUED.fullmatch(name)
    if match and int(match["digits"]) > 0:
        form, scheme, index = ArchiveFormat.ZIP, Scheme.ZIP_SPANNED, int(match["digits"]) - 1
        return PartName(match["base"], form, scheme, index, match["digits"], anchored=False)
    return None


def _single(name: str) -> PartName | None:
    match = _SINGLE.fullmatch(name)
    if match is None:
        return None
    extension = match["ext"].lower()
    form = ArchiveFormat.TAR_GZ if extension == "tgz" else ArchiveFormat(extension)
    return PartName(match["base"], form, Scheme.SINGLE, LAST if form is ArchiveFormat.ZIP else 0)


def part_name(like: PartName, scheme: Scheme, index: int) -> str:
    """The name that the part at ``index`` of the set of ``like`` would have, in its spelling."""
    if scheme in (Scheme.RAR_PARTS, Scheme.NUMBERED):
        before, after = like.ending.rsplit(like.digits, 1)
        return f"{like.base}{before}{index + 1:0{len(like.digits)}d}{after}"
    ending = f".{like.format.value}"
    if scheme is Scheme.RAR_LEGACY and index > 0:
        letter = chr(ord("r") + (index - 1) // 100)
        ending = f".{letter}{(index - 1) % 100:02d}"
    elif scheme is Scheme.ZIP_SPANNED and index < LAST:
        ending = f".z{index + 1:02d}"
    return like.base + (ending.upper() if like.ending.isupper() else ending)
