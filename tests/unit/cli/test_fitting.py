"""Text that has to fit a terminal."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from worker.cli.fitting import cut, padded, wrapped


@pytest.mark.parametrize(
    ("text", "width", "expected"),
    [
        ("Atlas.rar", 9, "Atlas.rar"),
        ("Atlas.rar", 8, "Atlas.r…"),
        ("Half a Book.rar", 8, "Half a…"),
        ("漢字の本.zip", 12, "漢字の本.zip"),
        ("漢字の本.zip", 8, "漢字の…"),
        ("漢字の本.zip", 7, "漢字の…"),
        ("Atlas.rar", 1, "…"),
        ("Atlas.rar", 0, ""),
    ],
)
def test_a_name_that_is_too_long_is_cut_with_an_ellipsis_and_a_wide_letter_never_in_half(
    text, width, expected
):
    assert cut(text, width) == expected


@given(st.text(), st.integers(0, 30))
def test_a_padded_text_takes_exactly_its_cells(text, width):
    assert cell_len(padded(text, width)) == width


@given(st.text(alphabet="abc 漢"), st.integers(8, 40))
def test_wrapped_lines_fit_and_break_between_words_only(text, width):
    lines = wrapped(text, width, "  ")
    assert all(cell_len(line) <= width for line in lines)
    if all(cell_len(word) <= width - 2 for word in text.split()):
        assert " ".join(lines).split() == text.split()


def test_a_name_with_spaces_in_it_stays_in_one_line():
    words = "waits for part 2 of 3: (Half a Book.part2.rar), which nobody posted"
    lines = wrapped(words, 30, keep="Half a Book")
    assert lines == ["waits for part 2 of 3:", "(Half a Book.part2.rar), which", "nobody posted"]
