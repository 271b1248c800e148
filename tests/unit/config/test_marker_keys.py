"""What the key file keeps, so that what was published under a key stays known when that is given up."""

import base64

import pytest

from worker.config.secret_key import marker_keys, retired_line, secret_keys, write_keys
from worker.config.settings import Settings
from worker.domain.marker_code import marker_key
from worker.errors import UserError

OLD, FRESH, FRESHER = (bytes([number]) * 32 for number in (1, 2, 3))


def _given(*lines: str) -> Settings:
    return Settings.model_validate({"secret_key": "\n".join(lines)})


def _line(key: bytes) -> str:
    return base64.b64encode(key).decode()


def test_a_retired_key_opens_nothing_and_its_codes_are_known():
    settings = _given(_line(FRESH), retired_line(OLD))
    assert secret_keys(settings, {}) == [FRESH]
    assert marker_keys(settings, {}) == [marker_key(FRESH), marker_key(OLD)]
    assert _line(OLD) not in retired_line(OLD)


def test_keys_in_the_data_folder_leave_their_codes_behind_at_every_change(tmp_path):
    settings = Settings.model_validate({"data_dir": str(tmp_path)})
    first = secret_keys(settings, {})[0]
    write_keys(settings, [FRESH], [first])
    write_keys(settings, [FRESHER], [FRESH])
    write_keys(settings, [FRESHER], [FRESH])
    assert secret_keys(settings, {}) == [FRESHER]
    assert marker_keys(settings, {}) == [marker_key(key) for key in (FRESHER, first, FRESH)]


def test_a_file_with_nothing_but_retired_keys_seals_nothing():
    with pytest.raises(UserError, match="is empty"):
        secret_keys(_given(retired_line(OLD)), {})


def test_a_broken_retired_line_says_which_line_it_is():
    with pytest.raises(UserError, match=r"a line marker:… of secret_key has 3 bytes"):
        marker_keys(_given(_line(FRESH), "marker:QUJD"), {})
