import pytest
from hypothesis import given
from hypothesis import strategies as st

from worker.domain.split_plan import OriginalFile, restore, split_plan

NAMES = st.lists(
    st.one_of(
        st.text(min_size=1, max_size=8), st.sampled_from(["a", "a.001", "a.0001", "a.001.001", "a.zip"])
    ),
    max_size=6,
    unique=True,
)


@given(st.data(), NAMES, st.integers(1, 50))
def test_p9_restoring_a_split_gives_back_every_file(data, names, limit):
    contents = {name: data.draw(st.binary(max_size=400)) for name in names}
    plan = split_plan([OriginalFile(name, len(body)) for name, body in contents.items()], limit)
    bodies = list(contents.values())
    parts = {p.name: bodies[p.file_index][p.offset : p.offset + p.length] for p in plan.parts}
    assert len(parts) == len(plan.parts)
    assert restore(plan, parts) == contents


@given(st.lists(st.integers(0, 10**13), max_size=8), st.integers(10**9, 10**11))
def test_no_part_is_empty_or_above_the_limit_and_windows_tile_each_file(sizes, limit):
    plan = split_plan([OriginalFile(f"f{n}", size) for n, size in enumerate(sizes)], limit)
    reached = [0] * len(sizes)
    for part in plan.parts:
        assert 0 < part.length <= limit
        assert part.offset == reached[part.file_index]
        reached[part.file_index] += part.length
    assert reached == sizes
    assert [p.file_index for p in plan.parts] == sorted(p.file_index for p in plan.parts)


@given(st.integers(1, 5_000), st.integers(1, 7))
def test_p9_part_names_of_a_file_sort_in_order(size, limit):
    names = [part.name for part in split_plan([OriginalFile("a.zip", size)], limit).parts]
    assert names == sorted(names)


def test_p9_parts_are_numbered_from_001_after_the_whole_name():
    plan = split_plan([OriginalFile("a.tar.gz", 25)], 10)
    assert [(p.name, p.offset, p.length) for p in plan.parts] == [
        ("a.tar.gz.001", 0, 10),
        ("a.tar.gz.002", 10, 10),
        ("a.tar.gz.003", 20, 5),
    ]


def test_volumes_within_the_limit_pass_unchanged_and_only_the_oversized_one_is_split():
    files = [OriginalFile("a.part1.rar", 10), OriginalFile("a.part2.rar", 15), OriginalFile("a.part3.rar", 4)]
    assert [(p.name, p.file_index) for p in split_plan(files, 10).parts] == [
        ("a.part1.rar", 0),
        ("a.part2.rar.001", 1),
        ("a.part2.rar.002", 1),
        ("a.part3.rar", 2),
    ]


def test_a_limit_without_room_is_refused():
    with pytest.raises(ValueError, match="room"):
        split_plan([OriginalFile("a", 1)], 0)
