"""The image and the compose files keep what they promise, as far as can be told without an engine."""

import json
import os
import re
import shutil
import subprocess
from pathlib import Path, PurePosixPath

import pytest
import yaml
from dockerignore import is_sent, rules

from worker.config.load import load
from worker.config.settings import Settings

_ROOT = Path(__file__).parents[2]
_FIRST_LOOK = ("docker-compose.yml", "docker-compose.demo.yml")


@pytest.fixture(scope="module")
def compose():
    return yaml.safe_load((_ROOT / "docker-compose.yml").read_text())


@pytest.fixture(scope="module")
def demo():
    return yaml.safe_load((_ROOT / "docker-compose.demo.yml").read_text())


def _files():
    """Every file that git keeps or would keep."""
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard"],
        cwd=_ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    return [name for name in listed.stdout.splitlines() if (_ROOT / name).exists()]


def _copied():
    """What the Dockerfile takes from the build's context, each as it is written there."""
    text = (_ROOT / "Dockerfile").read_text().replace("\\\n", " ")
    for line in re.findall(r"^(?:COPY|ADD)\s+(.*)$", text, re.MULTILINE):
        flags = [word for word in line.split() if word.startswith("--")]
        if not any(flag.startswith("--from=") for flag in flags):
            *sources, _ = [word for word in line.split() if word not in flags]
            yield from sources


def _below(source, files):
    pattern = source.rstrip("/")
    return [name for name in files if name.startswith(f"{pattern}/") or PurePosixPath(name).match(pattern)]


def test_whatever_the_image_copies_is_in_git_and_reaches_the_build():
    known, files = rules((_ROOT / ".dockerignore").read_text()), _files()
    copied = list(_copied())
    assert len(copied) >= 7
    for source in copied:
        found = _below(source, files)
        assert found, f"COPY {source}: nothing of that name is in git"
        assert any(is_sent(name, known) for name in found), f"COPY {source}: .dockerignore leaves it out"


def test_every_file_of_the_package_reaches_the_build():
    known = rules((_ROOT / ".dockerignore").read_text())
    package = [name for name in _files() if name.startswith(("worker/", "alembic/"))]
    assert len(package) > 100
    locks = re.findall(r"-r (requirements/\S+)", (_ROOT / "Dockerfile").read_text())
    assert len(locks) == 3
    assert [name for name in [*package, *locks] if not is_sent(name, known)] == []


def test_nothing_that_is_private_or_made_here_reaches_the_build():
    known = rules((_ROOT / ".dockerignore").read_text())
    private = (
        *("secrets/secret_key", ".env", "worker.toml", ".git/config", ".venv/bin/python", ".worker/demo/x"),
        *("worker/cipher/_ige.abi3.so", "worker/cli/__pycache__/run.cpython-313.pyc"),
    )
    assert [name for name in private if is_sent(name, known)] == []


def test_no_service_has_privileges_or_may_gain_them(compose):
    assert set(compose["services"]) >= {"postgres", "migrate", "worker"}
    for service in compose["services"].values():
        assert service["cap_drop"] == ["ALL"]
        assert service["security_opt"] == ["no-new-privileges:true"]
        assert service["mem_limit"]
        assert service["pids_limit"] > 0
        assert "ports" not in service


def test_workers_can_be_scaled_and_write_nowhere_but_to_their_volume(compose):
    worker = compose["services"]["worker"]
    assert "container_name" not in worker
    assert worker["read_only"] is True
    assert worker["volumes"] == ["downloads:/var/lib/archive-fleet"]


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


def test_images_are_named_by_an_exact_version_and_the_database_keeps_its_data_in_the_volume(compose):
    bases = re.findall(r"^ARG \w+_IMAGE=(.*)$", (_ROOT / "Dockerfile").read_text(), re.MULTILINE)
    postgres = re.fullmatch(r"\$\{POSTGRES_IMAGE:-(.*)\}", compose["services"]["postgres"]["image"]).group(1)
    assert all(re.fullmatch(r"[a-z]+:\d+\.\d+(\.\d+)?-[a-z-]+", name) for name in [*bases, postgres])
    (build, python), (run, slim) = (name.split(":")[1].split("-", 1) for name in bases)
    assert (build, f"slim-{python}") == (run, slim)
    # From 18 on the image keeps its data below this folder, by major version.
    assert compose["services"]["postgres"]["volumes"] == ["postgres:/var/lib/postgresql"]


def test_the_example_of_an_environment_lists_what_compose_reads(compose):
    text = (_ROOT / "docker-compose.yml").read_text() + (_ROOT / "docker-compose.demo.yml").read_text()
    read = set(re.findall(r"\$\{(\w+)", text))
    for service in compose["services"].values():
        read |= {name for name, value in service.get("environment", {}).items() if value is None}
        read |= set(service.get("build", {}).get("args", []))
    listed = set(re.findall(r"^#?(\w+)=", (_ROOT / ".env.example").read_text(), re.MULTILINE))
    assert listed == read | {"COMPOSE_FILE"}


def test_the_demo_shares_no_volume_and_no_secret_with_a_real_fleet(compose, demo):
    assert demo["name"] != compose["name"]
    # A project's name may come from the environment; these do not follow it.
    assert demo["volumes"].keys() > compose["volumes"].keys()
    assert all(
        volume["name"].startswith("${ARCHIVE_FLEET_DEMO:-archive-fleet-demo}_")
        for volume in demo["volumes"].values()
    )
    images = {service["image"] for name, service in demo["services"].items() if name != "postgres"}
    assert images == {"${ARCHIVE_FLEET_DEMO:-archive-fleet-demo}:local"}
    assert demo["secrets"].keys() == compose["secrets"].keys()
    for name, secret in demo["secrets"].items():
        assert (_ROOT / secret["file"]).is_file(), name
        assert not secret["file"].startswith(compose["secrets"][name]["file"].rpartition("/")[0])


def test_everything_that_the_demo_adds_is_as_confined_as_the_fleet(demo):
    added = {name: service for name, service in demo["services"].items() if name not in ("worker", "migrate")}
    assert added.keys() == {"telegram", "stage", "watch"}
    for service in added.values():
        assert service["cap_drop"] == ["ALL"]
        assert service["security_opt"] == ["no-new-privileges:true"]
        assert service["read_only"] is True
        assert service["mem_limit"]
        assert service["pids_limit"] > 0
        assert not service.keys() & {"ports", "privileged", "cap_add"}


def test_the_settings_of_the_demo_are_settings(demo, tmp_path):
    (file := tmp_path / "file").write_text("x")
    for service in demo["services"].values():
        load(
            {
                k: str(file) if k.endswith(("_FILE", "_KEY")) else v
                for k, v in service.get("environment", {}).items()
            }
        )


def test_compose_itself_accepts_the_files():
    docker = shutil.which("docker")
    if docker is None or subprocess.run([docker, "compose", "version"], capture_output=True).returncode != 0:
        pytest.skip("docker compose is not installed; the other tests read the files by themselves")
    for files in (_FIRST_LOOK[:1], _FIRST_LOOK):
        done = subprocess.run(
            [
                docker,
                "compose",
                *(word for file in files for word in ("-f", file)),
                "config",
                "--format",
                "json",
            ],
            cwd=_ROOT,
            capture_output=True,
            text=True,
            env={name: value for name, value in os.environ.items() if not name.startswith("WORKER_")},
        )
        assert done.returncode == 0, done.stderr
        services = json.loads(done.stdout)["services"]
        assert services.keys() >= {"postgres", "migrate", "worker"}
        assert all(service["cap_drop"] == ["ALL"] and "ports" not in service for service in services.values())
