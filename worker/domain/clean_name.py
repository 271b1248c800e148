"""File names as they are sent on: readable, and harmless on every system that saves them."""

from __future__ import annotations

import re
import unicodedata

from worker.domain.composed import composed

MAX_BYTES = 200
_RESERVED = re.compile(r"(?:con|prn|aux|nul|com[0-9¹²³]|lpt[0-9¹²³])(?:\..*)?", re.IGNORECASE)
_FORBIDDEN = re.compile(r'[/\\:*?"<>|]')
_EXTENSION = re.compile(
    r"(?:\.part[0-9]{1,5}\.rar|\.(?:zip|7z|rar)\.[0-9]{3,5}|\.tar\.\w{2,4}|\.\w{1,8})$", re.IGNORECASE
)


def clean_file_name(name: str) -> str:
    """Replace separators, drop control and bidirectional characters, avoid reserved names, bound length."""
    name = composed(name.encode("utf-8", "replace").decode())
    name = "".join(c for c in name if unicodedata.category(c) not in ("Cc", "Cf", "Cs", "Zl", "Zp"))
    name = " ".join(_FORBIDDEN.sub("_", name).split())
    name = name.lstrip(" .").rstrip(" .")
    if _RESERVED.fullmatch(name):
        name = f"_{name}"
    return _shortened(name) or "unnamed"


def _shortened(name: str) -> str:
    if len(name.encode()) <= MAX_BYTES:
        return name
    found = _EXTENSION.search(name)
    ending = found.group() if found else ""
    stem = name[: len(name) - len(ending)].encode()[: MAX_BYTES - len(ending.encode())]
    return stem.decode(errors="ignore").rstrip() + ending
