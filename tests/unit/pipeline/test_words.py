"""What a package's tags are read from."""

from worker.domain.archive_set import PostedFile
from worker.domain.preview_choice import PostedPhoto
from worker.pipeline.index import _words_of
from worker.store.postings import ArchivePosting


def _file(number, caption):
    return PostedFile(number, number, f"a.part{number}.rar", 1, 0, album_id=7, caption=caption)


def test_the_words_of_thousands_of_parts_are_bounded_and_those_of_the_photo_are_among_them():
    files = tuple(_file(number, f"{number} " + "x" * 4000) for number in range(20_000))
    words = _words_of(ArchivePosting("a", files=files), PostedPhoto(1, 0, album_id=7, caption="#cover"))
    assert len(words) < 1_000_000
    assert words.endswith("#cover")


def test_words_that_every_part_repeats_are_read_once():
    files = tuple(_file(number, "#castle") for number in range(3))
    assert _words_of(ArchivePosting("a", files=files), None) == "#castle"
