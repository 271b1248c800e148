"""No setting without a word on what it is for."""

from pathlib import Path

from worker.config.describe import page
from worker.config.load import setting_names

_PAGE = Path(__file__).parents[3] / "docs" / "settings.md"


def test_every_setting_is_described():
    described = {line.split("`")[1]: line for line in page().splitlines() if line.startswith("| `")}
    assert list(described) == setting_names()
    assert [name for name, line in described.items() if line.endswith(("| None |", "|  |"))] == []


def test_the_page_of_settings_is_up_to_date():
    assert _PAGE.read_text() == page(), "run: python -m worker.config.describe > docs/settings.md"
