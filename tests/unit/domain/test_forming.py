"""How the answer of grouping is laid over the sets that exist."""

from itertools import count

from worker.domain.archive_set import PostedFile
from worker.domain.forming import EMPTY, PROTECTED, UNCHECKED, OpenFile, form, stands_alone, without_spares
from worker.domain.grouping import group
from worker.domain.listing import Completeness

_numbers = count(1)


def file(name: str, *, set_id: int | None = None, size: int = 10, protected: bool = False) -> OpenFile:
    number = next(_numbers)
    posted = PostedFile(number, 1000 + number, name, size, date=number)
    return OpenFile(100 + number, set_id, posted, protected)


def test_a_lone_continuation_makes_no_set():
    assert form([file("report.r12")], {}).sets == ()


def test_p5_a_set_with_a_hole_is_collecting_and_names_the_missing_part():
    (found,) = form([file("a.part1.rar"), file("a.part2.rar"), file("a.part5.rar")], {}).sets
    assert found.state == "collecting"
    assert found.reason == "waits for 2 parts of 5: a.part3.rar, a.part4.rar"
    assert not found.to_prove


def test_p5_one_missing_part_is_named_by_number_and_name():
    (found,) = form([file("a.7z.001"), file("a.7z.003")], {}).sets
    assert found.reason == "waits for part 2 of 3: a.7z.002"


def test_a_spanned_zip_without_its_last_part_waits_for_it():
    (found,) = form([file("a.z01"), file("a.z02")], {}).sets
    assert found.reason == "waits for part 3 of 3: a.zip"


def test_many_missing_parts_are_counted_not_listed():
    (found,) = form([file("a.part1.rar"), file("a.part20.rar")], {}).sets
    assert found.reason.startswith("waits for 18 parts of 20: a.part2.rar, a.part3.rar")
    assert found.reason.endswith("and 13 more")


def test_a_set_without_a_hole_has_to_be_proven():
    (found,) = form([file("a.part1.rar"), file("a.part2.rar")], {}).sets
    assert (found.state, found.reason, found.to_prove) == ("collecting", UNCHECKED, True)
    assert found.name == "a.rar"


def test_what_cannot_be_one_volume_of_many_is_ready_at_once():
    found = form([file("a.7z"), file("b.tar.gz")], {}).sets
    assert [(s.state, s.to_prove) for s in found] == [("ready", False), ("ready", False)]


def test_a_zip_or_rar_by_itself_has_to_show_that_it_is_no_volume():
    found = form([file("a.zip"), file("b.rar")], {}).sets
    assert [(s.state, s.to_prove) for s in found] == [("collecting", True), ("collecting", True)]


def test_p14_a_protected_set_is_skipped_once_it_is_all_there():
    (found,) = form([file("a.part1.rar"), file("a.part2.rar", protected=True)], {}).sets
    assert (found.state, found.reason, found.to_prove) == ("skipped", PROTECTED, True)


def test_an_empty_file_is_skipped():
    (found,) = form([file("a.zip", size=0)], {}).sets
    assert (found.state, found.reason, found.to_prove) == ("skipped", EMPTY, False)


def test_a_late_part_goes_into_the_set_that_waits_for_it():
    waiting = [file("a.part1.rar", set_id=7), file("a.part3.rar", set_id=7)]
    (found,) = form([*waiting, file("a.part2.rar")], {7: 2}).sets
    assert found.set_id == 7
    assert [number for _, number in found.parts] == [0, 1, 2]
    assert found.to_prove


def test_nothing_is_written_where_nothing_changed():
    formation = form([file("a.part1.rar", set_id=7), file("a.part3.rar", set_id=7)], {7: 2})
    assert formation.sets == formation.dissolved == formation.emptied == formation.loose == ()


def test_a_set_that_lost_a_file_is_written_anew():
    (found,) = form([file("a.part1.rar", set_id=7), file("a.part3.rar", set_id=7)], {7: 3}).sets
    assert found.reason == "waits for part 2 of 3: a.part2.rar"


def test_p7_a_second_posting_of_the_same_name_is_a_set_of_its_own():
    first = [file("a.part1.rar", set_id=7), file("a.part2.rar", set_id=7)]
    (found,) = form([*first, file("a.part1.rar"), file("a.part2.rar")], {7: 2}).sets
    assert found.set_id is None


def test_sets_that_turn_out_to_be_one_leave_one_row():
    formation = form(
        [file("a.part1.rar", set_id=7), file("a.part2.rar", set_id=7), file("a.part4.rar", set_id=9)],
        {7: 2, 9: 1},
    )
    (found,) = formation.sets
    assert found.set_id == 7
    assert formation.dissolved == (9,)


def test_a_set_whose_files_are_all_gone_is_told_apart_from_one_whose_files_moved():
    assert form([], {7: 2}).emptied == (7,)


def test_a_continuation_left_alone_leaves_its_set():
    left = file("a.r01", set_id=7)
    formation = form([left], {7: 2})
    assert formation.loose == (left.file_id,)
    assert formation.dissolved == (7,)


def test_a_zip_beside_numbered_files_may_be_whole_by_itself():
    found = _grouped("a.z01", "a.zip")
    assert [[part.file_name for part in fewer.parts] for fewer in without_spares(found)] == [["a.zip"]]


def test_what_follows_the_end_of_an_archive_may_be_spare():
    found = _grouped("a.part1.rar", "a.part2.rar", "a.part3.rar")
    assert [len(fewer.parts) for fewer in without_spares(found)] == [2, 1]


def test_a_damaged_file_beside_others_does_not_stand_alone():
    (alone,) = without_spares(_grouped("a.z01", "a.zip"))
    assert stands_alone(alone, Completeness(complete=True))
    assert not stands_alone(alone, Completeness(complete=True, reason="posted as one file, damaged"))
    assert not stands_alone(alone, Completeness(complete=False))


def test_volumes_judged_with_a_note_stand_without_what_follows_them():
    fewer, _ = without_spares(_grouped("a.part1.rar", "a.part2.rar", "a.part3.rar"))
    assert stands_alone(fewer, Completeness(complete=True, reason="judged by salt and sizes"))


def test_a_single_file_has_no_spare_parts():
    assert without_spares(_grouped("a.zip")) == []


def _grouped(*names):
    (found,) = group(file(name).posted for name in names).sets
    return found
