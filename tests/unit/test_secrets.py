"""`make secrets`: one command that makes what compose needs, and overwrites nothing."""

import base64
import re
import shutil
import stat
import subprocess
from pathlib import Path

import pytest
import yaml

_ROOT = Path(__file__).parents[2]
_HASH = "0123456789abcdef0123456789abcdef"
_GIVEN = {"WORKER_TELEGRAM__API_ID": "12345", "WORKER_TELEGRAM__API_HASH": _HASH}
_LINE = "WORKER_TELEGRAM__API_ID=12345\n"


@pytest.fixture
def make_secrets(tmp_path):
    """The script as it runs where there is neither Python nor openssl."""
    programs = tmp_path / "programs"
    programs.mkdir()
    for name in ("sh", "dirname", "cat", "mv", "mkdir", "chmod", "od", "tr", "sed", "head", "tail", "base64"):
        (programs / name).symlink_to(shutil.which(name))
    (place := tmp_path / "checkout").mkdir()

    def run(**given):
        return subprocess.run(
            ["sh", _ROOT / "docs" / "containers" / "secrets.sh", place],
            env={"PATH": str(programs), **given},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
        )

    run.place = place
    return run


def _secret(place, name):
    return (place / "secrets" / name).read_text().strip()


def test_it_makes_everything_that_compose_asks_for(make_secrets):
    done = make_secrets(**_GIVEN)
    assert done.returncode == 0, done.stderr
    compose = yaml.safe_load((_ROOT / "docker-compose.yml").read_text())
    assert all((make_secrets.place / secret["file"]).stat().st_size for secret in compose["secrets"].values())
    place = make_secrets.place
    assert len(base64.b64decode(_secret(place, "secret_key"), validate=True)) == 32
    assert re.fullmatch(r"[0-9a-f]{48}", password := _secret(place, "postgres_password"))
    assert _secret(place, "database_url") == f"postgresql://fleet:{password}@postgres:5432/fleet"
    assert _secret(place, "api_hash") == _HASH
    assert (place / ".env").read_text() == _LINE
    assert done.stdout.count(" made\n") == 4


def test_only_the_owner_may_enter_and_every_container_may_read(make_secrets):
    make_secrets(**_GIVEN)
    folder = make_secrets.place / "secrets"
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert {stat.S_IMODE(path.stat().st_mode) for path in folder.iterdir()} == {0o444}
    assert stat.S_IMODE((make_secrets.place / ".env").stat().st_mode) == 0o600


def test_a_second_time_it_changes_nothing_and_says_so(make_secrets):
    make_secrets(**_GIVEN)
    before = {path: path.read_bytes() for path in make_secrets.place.rglob("*") if path.is_file()}
    done = make_secrets(WORKER_TELEGRAM__API_ID="7", WORKER_TELEGRAM__API_HASH="f" * 32)
    assert done.returncode == 0
    assert {path: path.read_bytes() for path in make_secrets.place.rglob("*") if path.is_file()} == before
    assert done.stdout.count("left as it was") == 5
    assert " made\n" not in done.stdout


def test_id_and_hash_may_stand_in_env_beside_other_lines(make_secrets):
    (make_secrets.place / ".env").write_text(
        f'# mine\nWORKER_TELEGRAM__API_HASH="{_HASH}"\nCOMPOSE_FILE=x.yml'
    )
    done = make_secrets(WORKER_TELEGRAM__API_ID="12345")
    assert done.returncode == 0, done.stderr
    assert _secret(make_secrets.place, "api_hash") == _HASH
    assert (make_secrets.place / ".env").read_text().endswith("\nCOMPOSE_FILE=x.yml\n" + _LINE)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({}, "no API id. Set WORKER_TELEGRAM__API_ID"),
        ({"WORKER_TELEGRAM__API_ID": "12345"}, "no API hash. Set WORKER_TELEGRAM__API_HASH"),
        ({**_GIVEN, "WORKER_TELEGRAM__API_HASH": "0123"}, "an API hash is 32 digits"),
        ({**_GIVEN, "WORKER_TELEGRAM__API_HASH": "x" * 32}, "an API hash is 32 digits"),
        ({**_GIVEN, "WORKER_TELEGRAM__API_ID": "12 3"}, "an API id is a number"),
    ],
)
def test_what_is_missing_or_wrong_is_named_and_a_later_run_goes_on(make_secrets, given, said):
    failed = make_secrets(**given)
    assert failed.returncode == 2
    assert said in failed.stderr
    key = _secret(make_secrets.place, "secret_key")
    assert make_secrets(**_GIVEN).returncode == 0
    assert _secret(make_secrets.place, "secret_key") == key


def test_password_and_address_are_made_from_each_other(make_secrets):
    make_secrets(**_GIVEN)
    secrets = make_secrets.place / "secrets"
    address, password = (
        _secret(make_secrets.place, "database_url"),
        _secret(make_secrets.place, "postgres_password"),
    )
    (secrets / "postgres_password").unlink()
    make_secrets()
    assert _secret(make_secrets.place, "postgres_password") == password
    (secrets / "database_url").unlink()
    make_secrets()
    assert _secret(make_secrets.place, "database_url") == address


def test_a_password_that_an_address_cannot_have_is_refused_and_left_as_it_was(make_secrets):
    (folder := make_secrets.place / "secrets").mkdir()
    (folder / "postgres_password").write_text("p@ss/w:rd%\n")
    done = make_secrets(**_GIVEN)
    assert done.returncode == 2
    assert "secrets/postgres_password has characters that an address cannot have" in done.stderr
    assert [path.name for path in folder.iterdir()] == ["postgres_password"]
    assert _secret(make_secrets.place, "postgres_password") == "p@ss/w:rd%"


def test_the_hash_may_be_written_in_capitals_and_the_file_of_a_shell_be_read(make_secrets):
    lines = f"export WORKER_TELEGRAM__API_ID=12345\nexport WORKER_TELEGRAM__API_HASH={_HASH.upper()}\n"
    (make_secrets.place / ".env").write_text(lines)
    done = make_secrets(WORKER_TELEGRAM__API_ID="999")
    assert done.returncode == 0, done.stderr
    assert _secret(make_secrets.place, "api_hash") == _HASH
    assert (make_secrets.place / ".env").read_text() == lines
    assert "the environment names another API id" in done.stderr
