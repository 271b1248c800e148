"""Which sets newer files of the same numbers would make."""

from dataclasses import replace
from itertools import permutations

from worker.domain.archive_name import recognise
from worker.domain.archive_set import Named, PostedFile, archive_set
from worker.domain.replacing import Replaced, with_newer


def _file(message_id, name):
    return PostedFile(message_id, message_id, name, 10, date=0)


def _set(*names):
    files = [_file(number, name) for number, name in enumerate(names, start=1)]
    return archive_set(Named(file, recognise(file.file_name)) for file in files)


def _ids(ways):
    return [[part.message_id for part in way.parts] for way in ways]


PARTS = _set("a.part1.rar", "a.part2.rar", "a.part3.rar")


def test_every_later_file_of_a_number_takes_its_place_in_turn_newest_first_whatever_their_order():
    for others in permutations([_file(8, "A.part2.rar"), _file(9, "a.part2.rar"), _file(7, "a.part2.rar")]):
        assert _ids(with_newer(PARTS, others)) == [[1, 9, 3], [1, 8, 3], [1, 7, 3]]


def test_an_earlier_one_of_several_later_files_is_tried_beside_those_of_other_numbers():
    ways = with_newer(PARTS, [_file(7, "a.part2.rar"), _file(8, "a.part3.rar"), _file(9, "a.part2.rar")])
    assert _ids(ways) == [[1, 9, 8], [1, 7, 8], [1, 9, 3], [1, 2, 8], [1, 7, 3]]


def test_what_was_posted_before_a_part_that_took_the_place_of_another_is_later_than_that():
    replaced = _set("a.part1.rar", "a.part2.rar")
    others = [_file(9, "a.part2.rar"), _file(5, "a.part2.rar"), _file(2, "a.part2.rar")]
    found = archive_set([replaced.members[0], Named(_file(7, "a.part2.rar"), replaced.members[1].name)])
    assert _ids(with_newer(found, others)) == [[1, 9]]
    assert _ids(with_newer(found, others, {7: Replaced(3, 1)})) == [[1, 9], [1, 5]]


def test_a_number_that_has_had_its_tries_gets_only_what_was_posted_since():
    found = archive_set([*PARTS.members[:1], Named(_file(7, "a.part2.rar"), PARTS.members[1].name)])
    copies = [_file(number, "a.part2.rar") for number in range(3, 7)]
    assert len(with_newer(found, copies, {7: Replaced(2, 5)})) == 4
    assert with_newer(found, copies, {7: Replaced(2, 6)}) == []
    since = _file(9, "a.part2.rar")
    assert _ids(with_newer(found, [*copies, since], {7: Replaced(2, 6)})) == [[1, 9]]


def test_the_sets_that_are_taken_one_after_the_other_are_six_however_many_copies_stand_there():
    """Each is whole by its headers, and fetched in full before the next one is asked for."""
    copies = {number: _file(number, "a.part2.rar") for number in range(10, 1000)}
    current, before = PARTS, 0
    taken = []
    while ways := with_newer(current, copies.values(), {taken[-1]: Replaced(2, before)} if taken else {}):
        current, before = ways[0], before + 1
        taken.append(current.parts[1].message_id)
        del copies[taken[-1]]
    assert taken == [999, 998, 997, 996, 995, 994]


def test_a_document_that_comes_in_several_messages_is_tried_once():
    again = replace(_file(8, "a.part2.rar"), document_id=2)
    twice = [_file(9, "a.part2.rar"), replace(_file(10, "a.part2.rar"), document_id=9)]
    assert _ids(with_newer(PARTS, [again, *twice])) == [[1, 10, 3]]


def test_any_number_of_later_files_makes_a_bounded_number_of_ways():
    others = [_file(10 + n, f"a.part{1 + n % 3}.rar") for n in range(300)]
    ways = _ids(with_newer(PARTS, others))
    assert len(ways) == 12
    assert ways[0] == [307, 308, 309]


def test_several_are_tried_together_and_then_one_by_one_newest_first():
    ways = with_newer(PARTS, [_file(8, "a.part1.rar"), _file(9, "a.part3.rar")])
    assert _ids(ways) == [[8, 2, 9], [1, 2, 9], [8, 2, 3]]


def test_what_is_older_or_has_another_number_takes_no_place():
    assert with_newer(PARTS, [_file(1, "a.part2.rar"), _file(9, "a.part4.rar"), _file(9, "a.txt")]) == []
