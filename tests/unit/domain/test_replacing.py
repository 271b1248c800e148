"""Which sets newer files of the same numbers would make."""

from worker.domain.archive_name import recognise
from worker.domain.archive_set import Named, PostedFile, archive_set
from worker.domain.replacing import with_newer


def _file(message_id, name):
    return PostedFile(message_id, message_id, name, 10, date=0)


def _set(*names):
    files = [_file(number, name) for number, name in enumerate(names, start=1)]
    return archive_set(Named(file, recognise(file.file_name)) for file in files)


def _ids(ways):
    return [[part.message_id for part in way.parts] for way in ways]


PARTS = _set("a.part1.rar", "a.part2.rar", "a.part3.rar")


def test_the_newest_file_of_a_number_takes_its_place():
    others = [_file(8, "A.part2.rar"), _file(9, "a.part2.rar"), _file(7, "a.part2.rar")]
    assert _ids(with_newer(PARTS, others)) == [[1, 9, 3]]


def test_several_are_tried_together_and_one_by_one():
    ways = with_newer(PARTS, [_file(8, "a.part1.rar"), _file(9, "a.part3.rar")])
    assert _ids(ways) == [[8, 2, 9], [8, 2, 3], [1, 2, 9]]


def test_what_is_older_or_has_another_number_takes_no_place():
    assert with_newer(PARTS, [_file(1, "a.part2.rar"), _file(9, "a.part4.rar"), _file(9, "a.txt")]) == []
