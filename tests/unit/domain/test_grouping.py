import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from worker.domain.archive_set import PostedFile
from worker.domain.grouping import DAY, group


def post(message_id, name, *, size=100, date=None, **kwargs):
    date = message_id * 60 if date is None else date
    return PostedFile(message_id, message_id, name, size, date, **kwargs)


def posts(*names, start=1, **kwargs):
    return [post(number, name, **kwargs) for number, name in enumerate(names, start=start)]


def named(found):
    return [[part.file_name for part in item.parts] for item in found.sets]


def ids(found):
    return [[part.message_id for part in item.parts] for item in found.sets]


@pytest.mark.parametrize(
    "names",
    [
        ["a.part1.rar", "a.part2.rar", "a.part3.rar"],
        ["a.part09.rar", "a.part10.rar", "a.part11.rar"],
        ["a.rar", "a.r00", "a.r01"],
        ["a.z01", "a.z02", "a.zip"],
        ["a.zip.001", "a.zip.002", "a.zip.003"],
        ["a.7z.001", "a.7z.002"],
        ["a.rar.001", "a.rar.002"],
    ],
)
def test_p6_parts_posted_in_any_order_form_one_set_in_byte_order(names):
    shuffled = list(names)
    for seed in range(6):
        random.Random(seed).shuffle(shuffled)
        assert named(group(posts(*shuffled))) == [names]


def test_p6_legacy_order_goes_on_after_r99_with_s00():
    names = ["a.rar", *(f"a.r{n:02d}" for n in range(100)), "a.s00", "a.s01"]
    found = group(posts(*sorted(names)))
    assert named(found) == [names]
    assert found.sets[0].gapless


def test_p6_a_lone_continuation_part_is_ignored_with_its_reason():
    found = group(posts("report.r12"))
    assert not found.sets
    assert "continuation" in found.ignored[0].reason


def test_two_continuation_parts_wait_for_their_first_volume():
    (item,) = group(posts("a.r00", "a.r01")).sets
    assert item.missing == ("a.rar",)


def test_other_files_are_ignored_with_their_reason():
    found = group(posts("a.txt", "a.zip"))
    assert [i.file.file_name for i in found.ignored] == ["a.txt"]
    assert named(found) == [["a.zip"]]


def test_p5_missing_parts_are_named_in_the_style_of_those_present():
    cases = {
        ("a.part01.rar", "a.part04.rar"): ("a.part02.rar", "a.part03.rar"),
        ("a.part2.rar", "a.part10.rar"): tuple(f"a.part{n}.rar" for n in (1, 3, 4, 5, 6, 7, 8, 9)),
        ("a.7z.002",): ("a.7z.001",),
        ("a.z01", "a.z03", "a.zip"): ("a.z02",),
        ("a.z01", "a.z02"): ("a.zip",),
        ("a.rar", "a.r01"): ("a.r00",),
        ("A.PART1.RAR", "A.PART3.RAR"): ("A.PART2.RAR",),
        ("a.Part1.rar", "a.Part3.rar"): ("a.Part2.rar",),
        ("A.7Z.001", "A.7Z.003"): ("A.7Z.002",),
        ("a.7z.7z.001", "a.7z.7z.003"): ("a.7z.7z.002",),
        ("A.RAR", "A.R01"): ("A.R00",),
        ("A.Z01", "A.Z02"): ("A.ZIP",),
    }
    for names, missing in cases.items():
        (item,) = group(posts(*names)).sets
        assert item.missing == missing
        assert not item.gapless


def test_p7_two_postings_of_one_name_are_two_sets():
    names = ["a.part1.rar", "a.part2.rar"]
    assert ids(group(posts(*names, *names))) == [[1, 2], [3, 4]]


def test_p7_sets_of_a_thousand_parts_posted_three_times_are_three_sets():
    names = [f"a.part{number:04d}.rar" for number in range(1, 1001)]
    assert [len(item.parts) for item in group(posts(*names, *names, *names)).sets] == [1000] * 3


def test_p7_a_single_archive_posted_twice_is_two_sets():
    assert ids(group(posts("a.zip", "A.ZIP"))) == [[1], [2]]


def test_p7_a_posting_without_its_first_part_takes_none_from_the_next_posting():
    found = group(posts("a.part2.rar", "a.part3.rar", "a.part1.rar", "a.part2.rar", "a.part3.rar"))
    assert ids(found) == [[1, 2], [3, 4, 5]]


def test_p7_a_posting_without_its_last_part_takes_none_from_the_next_posting():
    found = group(posts("a.part1.rar", "a.part2.rar", "a.part1.rar", "a.part2.rar", "a.part3.rar"))
    assert ids(found) == [[1, 2], [3, 4, 5]]


def test_p7_interleaved_posters_are_kept_apart():
    files = [
        post(1, "a.part1.rar", poster_id=7),
        post(2, "a.part1.rar", poster_id=8),
        post(3, "a.part2.rar", poster_id=7),
        post(4, "a.part2.rar", poster_id=8),
    ]
    assert ids(group(files)) == [[1, 3], [2, 4]]


def test_p7_interleaved_albums_are_kept_apart():
    files = [
        post(1, "a.part1.rar", album_id=7),
        post(2, "a.part1.rar", album_id=8),
        post(3, "a.part2.rar", album_id=7),
        post(4, "a.part2.rar", album_id=8),
    ]
    assert ids(group(files)) == [[1, 3], [2, 4]]


def test_p7_a_reply_joins_the_posting_it_answers():
    files = [
        *posts("a.part1.rar", "a.part1.rar", "a.part2.rar"),
        post(4, "a.part2.rar", reply_to=1),
    ]
    assert ids(group(files)) == [[1, 4], [2, 3]]


def test_p7_interleaved_replies_to_two_posts_are_kept_apart():
    files = [
        post(1, "a.part1.rar", reply_to=100),
        post(2, "a.part1.rar", reply_to=200),
        post(3, "a.part2.rar", reply_to=100),
        post(4, "a.part2.rar", reply_to=200),
    ]
    assert ids(group(files)) == [[1, 3], [2, 4]]


def test_p7_two_postings_in_reply_to_one_post_are_two_sets():
    names = ["a.part2.rar", "a.part3.rar", "a.part1.rar", "a.part2.rar", "a.part3.rar"]
    assert ids(group(posts(*names, reply_to=100))) == [[1, 2], [3, 4, 5]]


def test_a_part_in_reply_to_a_post_joins_parts_that_answer_nothing():
    files = [post(1, "a.part1.rar"), post(2, "a.part2.rar", reply_to=100), post(3, "a.part3.rar")]
    assert ids(group(files)) == [[1, 2, 3]]


def test_p7_standing_in_one_topic_is_no_link_between_files():
    files = [
        post(11, "a.part1.rar", topic_id=5, reply_to=5),
        post(12, "a.part2.rar", topic_id=5, reply_to=8),
        post(13, "a.part1.rar", topic_id=5, reply_to=9),
        post(14, "a.part2.rar", topic_id=5, reply_to=5),
    ]
    assert ids(group(files)) == [[11, 12], [13, 14]]


def test_p7_volumes_of_another_size_belong_to_another_posting():
    files = [
        post(1, "a.part2.rar", size=100),
        post(2, "a.part3.rar", size=100),
        post(3, "a.part4.rar", size=10),
        post(4, "a.part1.rar", size=50),
        post(5, "a.part3.rar", size=50),
        post(6, "a.part2.rar", size=50),
    ]
    assert ids(group(files)) == [[1, 2, 3], [4, 6, 5]]


def test_p7_two_numbering_styles_are_two_postings():
    assert len(group(posts("a.part01.rar", "a.part2.rar")).sets) == 2


def test_p5_a_late_part_completes_its_set():
    early = [post(1, "a.part1.rar"), post(2, "a.part3.rar")]
    assert group(early).sets[0].missing == ("a.part2.rar",)
    late = [*early, post(90, "a.part2.rar", date=20 * DAY)]
    assert ids(group(late)) == [[1, 90, 2]]


def test_p7_the_same_name_long_after_is_another_posting():
    files = [post(1, "a.part1.rar"), post(2, "a.part2.rar", date=200 * DAY)]
    assert ids(group(files)) == [[1], [2]]


def test_an_album_of_ten_and_its_continuation_are_one_set():
    first = [post(n, f"a.part{n:02d}.rar", album_id=1) for n in range(1, 11)]
    second = [post(n, f"a.part{n:02d}.rar", album_id=2) for n in range(11, 15)]
    (item,) = group(first + second).sets
    assert len(item.parts) == 14


def test_one_name_in_two_topics_is_two_sets():
    files = [
        post(1, "a.part1.rar", topic_id=1),
        post(2, "a.part1.rar", topic_id=2),
        post(3, "a.part2.rar", topic_id=1),
        post(4, "a.part2.rar", topic_id=2),
    ]
    assert ids(group(files)) == [[1, 3], [2, 4]]


def test_parts_that_strayed_into_another_topic_find_their_set():
    files = [
        post(1, "a.part1.rar", topic_id=1),
        post(2, "a.part2.rar", topic_id=2),
        post(3, "a.part3.rar", topic_id=1),
    ]
    assert ids(group(files)) == [[1, 2, 3]]


NAMES = [
    "a.part1.rar",
    "a.part2.rar",
    "a.part02.rar",
    "a.rar",
    "a.r00",
    "a.zip",
    "a.z01",
    "a.7z.001",
    "b.txt",
]


ITEMS = st.tuples(st.sampled_from(NAMES), st.integers(0, 2), st.integers(0, 3), st.integers(0, 8))


@given(st.lists(ITEMS, max_size=25))
def test_every_file_is_in_one_set_or_ignored_and_no_set_holds_a_number_twice(items):
    files = [
        post(number, name, poster_id=poster, album_id=album or None, reply_to=answered or None)
        for number, (name, poster, album, answered) in enumerate(items, start=1)
    ]
    found = group(files)
    seen = [p.message_id for s in found.sets for p in s.parts] + [i.file.message_id for i in found.ignored]
    assert sorted(seen) == [f.message_id for f in files]
    for item in found.sets:
        numbers = [m.name.index for m in item.members]
        assert len(set(numbers)) == len(numbers)
        assert len({p.poster_id for p in item.parts}) == 1
