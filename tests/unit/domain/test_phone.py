"""Phone numbers are never shown whole."""

import pytest

from worker.domain.phone import looks_like_phone, masked_phone


@pytest.mark.parametrize(
    ("phone", "shown"),
    [
        ("+10000000001", "+1•••••••01"),
        ("4930123456", "+4•••••••56"),
        ("+49 30 1234-56", "+4•••••••56"),
        ("+12345", "+•••••••"),
        ("", "+•••••••"),
    ],
)
def test_the_first_digit_and_the_last_two_are_left(phone, shown):
    assert masked_phone(phone) == shown


def test_our_own_numbers_and_names_are_no_phones():
    assert [looks_like_phone(text) for text in ("+123", "10000000001", "3", "ada")] == [
        True,
        True,
        False,
        False,
    ]
