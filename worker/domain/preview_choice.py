"""Which picture stands for a set: one posted beside it, else the best one inside."""

from __future__ import annotations

import re
from bisect import bisect_left
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Iterable

    from worker.domain.archive_set import ArchiveSet

# A photo further away in time belongs to something else.
PHOTO_WINDOW = 600
_PICTURE = re.compile(r"\.(?:jpe?g|png|webp|gif|bmp)$", re.IGNORECASE)
_TELLING = (
    re.compile(r"\bcover\b|\bfront\b"),
    re.compile(r"\bposter\b|\bfolder\b|\btitle\b"),
    re.compile(r"\bpreview|\bthumb|\bsample|\bcontact"),
)

Rank: TypeAlias = tuple[int, int, int, str]


@dataclass(frozen=True, slots=True)
class PostedPhoto:
    """A photo message of a source."""

    message_id: int
    date: int
    poster_id: int | None = None
    album_id: int | None = None
    reply_to: int | None = None
    topic_id: int | None = None
    caption: str = ""


def nearest_photo(found: ArchiveSet, photos: Iterable[PostedPhoto]) -> PostedPhoto | None:
    """The photo that was posted for this set: by album or reply, else by caption, else by time."""
    posting = _posting(found)
    ranked = [(rank, photo) for photo in photos if (rank := _photo_rank(posting, photo)) is not None]
    return min(ranked, key=lambda pair: pair[0])[1] if ranked else None


@dataclass(frozen=True, slots=True)
class _Posting:
    """What photos are compared with, gathered once for all of them."""

    name: str
    dates: list[int]
    ids: set[int]
    answered: set[int | None]
    albums: set[int | None]
    topics: set[int | None]
    posters: set[int | None]


def _posting(found: ArchiveSet) -> _Posting:
    parts = found.parts
    return _Posting(
        name=" ".join(_words(found.base_name)),
        dates=sorted(part.date for part in parts),
        ids={part.message_id for part in parts},
        answered={part.reply_to for part in parts},
        albums={part.album_id for part in parts} - {None},
        topics={part.topic_id for part in parts},
        posters={part.poster_id for part in parts},
    )


def _photo_rank(posting: _Posting, photo: PostedPhoto) -> tuple[int, int, int] | None:
    place = bisect_left(posting.dates, photo.date)
    distance = min(abs(date - photo.date) for date in posting.dates[max(0, place - 1) : place + 1])
    if (
        photo.album_id in posting.albums
        or photo.reply_to in posting.ids
        or photo.message_id in posting.answered
    ):
        return 0, distance, photo.message_id
    if photo.topic_id not in posting.topics:
        return None
    if posting.name and posting.name in " ".join(_words(photo.caption)):
        return 1, distance, photo.message_id
    if distance <= PHOTO_WINDOW and photo.poster_id in posting.posters:
        return 2, distance, photo.message_id
    return None


def picture_rank(path: str, size: int, limit: int) -> Rank | None:
    """How well a member would do as the preview, smaller being better; None if it cannot be one."""
    folders, _, name = path.rpartition("/")
    if not _PICTURE.search(name) or not 0 < size <= limit:
        return None
    if name.startswith("._") or "__MACOSX" in folders:
        return None
    words = " ".join(_words(name))
    telling = next((n for n, pattern in enumerate(_TELLING) if pattern.search(words)), len(_TELLING))
    return telling, path.count("/"), -size, path


def _words(text: str) -> list[str]:
    return re.findall(r"\w+", text.casefold().replace("_", " "))
