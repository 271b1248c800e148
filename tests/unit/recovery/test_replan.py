"""Cutting anew what was never sent."""

from worker.domain.marker import Marker, find_marker
from worker.recovery.replan import cut_anew
from worker.store.uploads import IntentPart


def _part(ordinal: int, name: str, offset: int, length: int, file: tuple[int, int]) -> IntentPart:
    index, size = file
    marker = Marker(bytes(32), 100, offset, length, index, size, "a.zip", 1, 2, 3)
    return IntentPart(ordinal, name, offset, length, ordinal + 1, marker.line())


def test_windows_that_touch_are_joined_and_cut_to_the_limit():
    parts = [_part(1, "a.zip.002", 40, 40, (0, 100)), _part(2, "a.zip.003", 80, 20, (0, 100))]
    cut = cut_anew(parts, 25)
    assert [(part.ordinal, part.file_name, part.offset, part.length) for part in cut] == [
        (1, "a.zip.002", 40, 25),
        (2, "a.zip.003", 65, 25),
        (3, "a.zip.004", 90, 10),
    ]
    assert [find_marker(part.caption).offset for part in cut] == [40, 65, 90]


def test_no_window_spans_two_files_and_a_whole_file_keeps_its_name():
    parts = [_part(0, "a.zip", 0, 60, (0, 60)), _part(1, "b.zip", 60, 40, (1, 40))]
    cut = cut_anew(parts, 50)
    assert [(part.file_name, part.offset, part.length) for part in cut] == [
        ("a.zip.001", 0, 50),
        ("a.zip.002", 50, 10),
        ("b.zip", 60, 40),
    ]


def test_ids_are_made_anew_even_for_what_fits():
    (cut,) = cut_anew([_part(0, "a.zip", 0, 60, (0, 60))], 100)
    assert (cut.file_name, cut.length) == ("a.zip", 60)
    assert cut.random_id != 1


def test_nothing_missing_is_nothing_to_cut():
    assert cut_anew([], 10) == []
