"""How long a pause lasts, as people write it."""

import pytest

from worker.cli.pause import parse_span
from worker.errors import UserError


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("90s", 90), ("45m", 2700), ("2h", 7200), ("1h30m", 5400), ("1D", 86_400), ("1h 30m", 5400)],
)
def test_a_span_is_a_number_and_a_unit_or_several(text, seconds):
    assert parse_span(text) == seconds


@pytest.mark.parametrize("text", ["", "2", "h", "-2h", "2 hours", "2h!", "1000d", "٢h0"])
def test_anything_else_is_refused_with_an_example(text):
    with pytest.raises(UserError, match="1h30m"):
        parse_span(text)
