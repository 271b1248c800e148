"""Small decoders of values as archives store them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from worker.archives.dos_time import dos_time
from worker.archives.rar4 import file_name
from worker.archives.sink import Sink, clean_text
from worker.domain.listing import Entry, Mark


@pytest.mark.parametrize(
    ("date", "time", "text"),
    [
        (44 << 9 | 3 << 5 | 9, 12 << 11 | 30 << 5 | 5, "2024-03-09T12:30:10"),
        (1 << 5 | 1, 0, "1980-01-01T00:00:00"),
        (0, 0, None),
        (13 << 5 | 1, 0, None),
        (1 << 5 | 1, 24 << 11, None),
        (1 << 5 | 1, 30, None),
        (44 << 9 | 2 << 5 | 29, 0, "2024-02-29T00:00:00"),
        (44 << 9 | 2 << 5 | 31, 0, None),
        (127 << 9 | 12 << 5 | 31, 0, "2107-12-31T00:00:00"),
    ],
)
def test_dos_times_are_read_and_impossible_ones_are_none(date, time, text):
    assert dos_time(date, time) == text


@pytest.mark.parametrize(
    ("raw", "is_unicode", "name"),
    [
        (b"plain.txt", False, "plain.txt"),
        (b"dir\\file.txt", False, "dir/file.txt"),
        ("grüße.txt".encode(), True, "grüße.txt"),
        (b"caf\x82.txt", False, "café.txt"),
        # Two characters with the shared high byte, then a run taken over from the plain name.
        (b"??.txt\0" + bytes([0x04, 0b01011100, 0x10, 0x11, 0x02]), True, "\u0410\u0411.txt"),
        (b"broken\0\x04\xff", True, "broken"),
    ],
)
def test_names_in_old_rar_headers(raw, is_unicode, name):
    assert file_name(raw, is_unicode=is_unicode) == name


@given(st.binary(max_size=60), st.booleans())
def test_no_bytes_make_a_name_fail(raw, is_unicode):
    file_name(raw, is_unicode=is_unicode)


@given(st.text(st.characters(codec=None)))
def test_cleaned_text_can_be_stored_anywhere(text):
    cleaned = clean_text(text)
    cleaned.encode()
    assert "\0" not in cleaned


def test_after_its_limit_a_sink_only_counts():
    sent = []
    sink = Sink(sent.extend, entry_limit=3, output_limit=10**6)
    for number in range(5):
        sink.add(Entry(f"{number}", 10, 5, None, None, is_dir=False, encrypted=False))
    sink.close(archive_size=100)
    assert [entry.path for entry in sent] == ["0", "1", "2"]
    assert (sink.count, sink.total_size) == (5, 50)
    assert sink.marks == {Mark.TRUNCATED}
