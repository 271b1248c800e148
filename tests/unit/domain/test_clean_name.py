import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from worker.domain.clean_name import MAX_BYTES, clean_file_name


@pytest.mark.parametrize(
    ("name", "cleaned"),
    [
        ("a/b\\c.zip", "a_b_c.zip"),
        ("../../etc/passwd", "_.._etc_passwd"),
        ("photo\u202egpj.exe.zip", "photogpj.exe.zip"),
        ("line\nbreak\0.rar", "linebreak.rar"),
        ("CON.zip", "_CON.zip"),
        ("  .hidden. ", "hidden"),
        ("", "unnamed"),
        ("...", "unnamed"),
        ("写真.7z", "写真.7z"),
    ],
)
def test_p8_names_sent_on_are_cleaned(name, cleaned):
    assert clean_file_name(name) == cleaned


def test_p8_a_long_name_keeps_its_ending():
    assert clean_file_name("ü" * 300 + ".part01.rar").endswith("ü.part01.rar")


@given(st.text())
def test_p8_any_name_becomes_a_safe_one_and_stays_so(name):
    cleaned = clean_file_name(name)
    assert cleaned
    assert len(cleaned.encode()) <= MAX_BYTES
    assert not set(cleaned) & set('/\\:*?"<>|\0')
    assert not any(unicodedata.category(c) in ("Cc", "Cf") for c in cleaned)
    assert clean_file_name(cleaned) == cleaned
