"""The image and the compose file keep what they promise, as far as can be told without an engine."""

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from worker.config.load import load
from worker.config.settings import Settings

_ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def compose():
    docker = shutil.which("docker")
    if docker is None or subprocess.run([docker, "compose", "version"], capture_output=True).returncode != 0:
        pytest.skip("docker compose is not installed")
    done = subprocess.run(
        [docker, "compose", "config", "--format", "json"], cwd=_ROOT, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_no_service_has_privileges_or_may_gain_them(compose):
    assert set(compose["services"]) >= {"postgres", "migrate", "worker"}
    for service in compose["services"].values():
        assert service["cap_drop"] == ["ALL"]
        assert service["security_opt"] == ["no-new-privileges:true"]
        assert int(service["mem_limit"]) > 0
        assert service["pids_limit"] > 0
        assert "ports" not in service


def test_workers_can_be_scaled_and_write_nowhere_but_to_their_volume(compose):
    worker = compose["services"]["worker"]
    assert "container_name" not in worker
    assert worker["read_only"] is True
    assert [volume["target"] for volume in worker["volumes"]] == ["/var/lib/archive-fleet"]


def test_a_worker_is_given_more_time_to_stop_than_it_takes_to_drain(compose):
    minutes, seconds = re.fullmatch(
        r"(?:(\d+)m)?(?:(\d+)s)?", compose["services"]["worker"]["stop_grace_period"]
    ).groups("0")
    assert int(minutes) * 60 + int(seconds) > Settings().fleet.drain_secs


def test_secrets_come_as_files_and_every_variable_is_a_setting(compose, tmp_path):
    environment = compose["services"]["worker"]["environment"]
    files = {name for name in environment if name.endswith("_FILE")}
    assert files == {"WORKER_DATABASE_URL_FILE", "WORKER_SECRET_KEY_FILE", "WORKER_TELEGRAM__API_HASH_FILE"}
    (secret := tmp_path / "secret").write_text("x")
    load({name: str(secret) if name in files else "1" for name in environment})


def test_the_image_runs_as_a_fixed_user_and_installs_by_hash():
    text = (_ROOT / "Dockerfile").read_text()
    assert re.search(r"^USER 10001:10001$", text, re.MULTILINE)
    installs = re.findall(r"pip install (?!--no-deps)(.*)", text)
    assert installs
    assert all("--require-hashes" in install for install in installs)
