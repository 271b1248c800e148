"""What is planned to be sent, of however many files."""

from cpu_work import growth

from worker.pipeline.publish import _plan
from worker.store.sets import Claim, SourcePart


def _claim(count):
    parts = tuple(SourcePart(n, n, n, f"a.part{n}.rar", 10) for n in range(1, count + 1))
    return Claim(1, 1, 1, 7, "a.rar", "rar", 10 * count, 0, 0, None, parts)


def test_the_windows_of_several_files_follow_one_another():
    plan = list(_plan(_claim(3), b"h" * 32, 6))
    assert [(part.offset, part.length) for part in plan] == [
        (0, 6), (6, 4), (10, 6), (16, 4), (20, 6), (26, 4),
    ]  # fmt: skip


def test_w3_twice_as_many_parts_take_twice_as_long_to_plan():
    def prepare(count):
        claim = _claim(count)
        return lambda: list(_plan(claim, b"h" * 32, 100))

    assert growth(prepare, 20_000) < 2.5
