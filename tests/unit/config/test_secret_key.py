"""The key that sessions are encrypted with."""

import base64
import stat
import subprocess
import sys

import pytest

from worker.config.load import load
from worker.config.secret_key import KEY_BYTES, secret_keys
from worker.errors import UserError

_KEY = base64.b64encode(bytes(range(32))).decode()


def _settings(**env):
    return load({f"WORKER_{name.upper()}": str(value) for name, value in env.items()}).settings


def test_a_configured_key_is_used_as_it_is(tmp_path):
    assert secret_keys(_settings(secret_key=_KEY, data_dir=tmp_path)) == [bytes(range(32))]
    assert list(tmp_path.iterdir()) == []


def test_with_the_embedded_database_a_key_is_made_once_for_the_owner_alone(tmp_path):
    settings = _settings(data_dir=tmp_path / "data")
    (key,) = secret_keys(settings)
    assert len(key) == KEY_BYTES
    assert secret_keys(settings) == [key]
    (file,) = (tmp_path / "data").iterdir()
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert stat.S_IMODE(file.parent.stat().st_mode) == 0o700


def test_a_key_that_others_could_have_laid_in_the_data_folder_is_refused(tmp_path):
    (file := tmp_path / "secret.key").write_text(_KEY)
    file.chmod(0o666)
    with pytest.raises(UserError, match=r"can be changed by other users — run: chmod go-w"):
        secret_keys(_settings(data_dir=tmp_path))


def test_processes_that_make_the_key_at_once_get_the_same_one(tmp_path):
    script = (
        "import sys; sys.stdin.readline(); from worker.config.load import load; "
        "from worker.config.secret_key import secret_keys; print(secret_keys(load().settings)[0].hex())"
    )
    env = {"WORKER_DATA_DIR": str(tmp_path / "data"), "PYTHONPATH": ":".join(sys.path)}
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=env, text=True
        )
        for _ in range(3)
    ]
    for process in processes:
        process.stdin.write("go\n")
        process.stdin.flush()
    keys = {process.communicate()[0] for process in processes}
    assert len(keys) == 1
    assert len(keys.pop().strip()) == 2 * KEY_BYTES
    assert [file.name for file in (tmp_path / "data").iterdir()] == ["secret.key"]


def test_with_a_configured_database_a_missing_key_is_refused_and_none_is_made(tmp_path):
    with pytest.raises(UserError, match=r"no secret key is set.*WORKER_SECRET_KEY_FILE"):
        secret_keys(_settings(database_url="postgresql://u@h/d", data_dir=tmp_path))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(("text", "reason"), [("not base64!", "not base64"), ("aGVsbG8=", "5 bytes, not 32")])
def test_a_key_of_the_wrong_shape_is_refused_without_being_shown(text, reason):
    with pytest.raises(UserError, match=reason) as refused:
        secret_keys(_settings(secret_key=text))
    assert text not in str(refused.value)


def test_a_key_file_that_cannot_be_made_is_one_readable_error(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(UserError, match="cannot be made or read"):
        secret_keys(_settings(data_dir=tmp_path / "file" / "data"))
