"""The JSON of ``worker status`` and its description agree."""

import json
import re
from pathlib import Path

from fleet_facts import SILENT_AFTER, busy_fleet

from worker.status.compose import compose
from worker.status.document import SCHEMA_VERSION, to_document

_DOCS = (Path(__file__).parents[3] / "docs" / "status-json.md").read_text(encoding="utf-8")
# Objects whose keys are data.
_OPEN = {"api_activity.by_method": "<method>", "sync.sets": "<state>"}
_TYPES = {"string": str, "integer": int, "number": (int, float), "boolean": bool, "null": type(None)}


def _leaves(value, path=""):
    if isinstance(value, dict):
        for key, item in value.items():
            name = _OPEN.get(path, key)
            yield from _leaves(item, f"{path}.{name}" if path else name)
    elif isinstance(value, list):
        assert value, f"the sample has nothing in {path}"
        for item in value:
            yield from _leaves(item, f"{path}[]")
    else:
        yield path, value


def _documented() -> dict[str, str]:
    return dict(re.findall(r"^\| `([^`]+)` \| ([^|]+) \|", _DOCS, re.MULTILINE))


def _document():
    return json.loads(json.dumps(to_document(compose(busy_fleet(), silent_after=SILENT_AFTER))))


def test_every_field_is_described_and_every_description_is_a_field():
    assert {path for path, _ in _leaves(_document())} == set(_documented())


def test_every_value_has_the_type_that_is_described():
    documented = _documented()
    for path, value in _leaves(_document()):
        allowed = [_TYPES[name.strip()] for name in documented[path].split(" or ")]
        assert any(isinstance(value, kind) for kind in allowed), (path, value)
        assert not isinstance(value, bool) or bool in allowed, (path, value)


def test_the_version_is_the_one_that_is_described():
    assert f"`schema_version` is {SCHEMA_VERSION}." in _DOCS
    assert _document()["schema_version"] == SCHEMA_VERSION


def test_no_whole_phone_number_is_in_it():
    text = json.dumps(_document())
    assert not [account.phone for account in busy_fleet().accounts if account.phone.lstrip("+") in text]


def test_the_keys_are_those_that_scripts_rely_on():
    assert list(_document()) == [
        *("schema_version", "at", "accounts", "workers", "api_activity", "rate_limits", "sync")
    ]
