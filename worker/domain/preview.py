"""The one small picture that stands for a package."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class PreviewKind(StrEnum):
    """Where a preview was taken from."""

    POSTED = "posted"  # a photo that was posted with the archive
    INSIDE = "inside"  # a picture among its members


@dataclass(frozen=True, slots=True)
class Preview:
    """A JPEG; ``origin`` is the photo's message id or the member's path."""

    kind: PreviewKind
    origin: str
    jpeg: bytes
