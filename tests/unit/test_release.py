"""The version, its commit, and the places that repeat them."""

import json
import os
import re
import shutil
import subprocess
import tomllib
from pathlib import Path

import pytest
from click.testing import CliRunner

from worker import __version__, release
from worker.cli.main import cli

_ROOT = Path(__file__).parents[2]


@pytest.fixture
def package(tmp_path):
    """A package in a folder that may become a checkout."""
    if shutil.which("git") is None:
        pytest.skip("git is not installed")
    made = tmp_path / "checkout" / "worker"
    made.mkdir(parents=True)
    (made / "module.py").write_text("one\n")
    return made


def _git(package, *arguments):
    who = ("-c", "user.name=Ada", "-c", "user.email=ada@example.org", "-c", "commit.gpgsign=false")
    env = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    command = ("git", "-C", str(package.parent), *who, *arguments)
    return subprocess.run(command, env=env, check=True, capture_output=True, text=True).stdout.strip()


def _commit(package):
    _git(package, "init", "--quiet")
    _git(package, "add", ".")
    _git(package, "commit", "--quiet", "--message", "one")
    return _git(package, "rev-parse", "--short=7", "HEAD")


def test_a_checkout_is_its_commit_also_where_a_tag_stands_or_a_hook_of_git_runs(
    package, tmp_path, monkeypatch
):
    made = _commit(package)
    _git(package, "tag", "--annotate", "v1", "--message", "one")
    monkeypatch.setenv("GIT_DIR", str(tmp_path / "elsewhere"))
    assert release.commit(package) == made


def test_a_changed_checkout_says_so(package):
    made = _commit(package)
    (package / "module.py").write_text("two\n")
    assert release.commit(package) == f"{made}-dirty"


def test_what_was_written_down_goes_over_what_git_says(package):
    _commit(package)
    (package / release.FILE).write_text("abc1234\n")
    assert release.commit(package) == "abc1234"


def test_a_package_below_the_repository_of_somebody_else_is_no_commit_of_it(package):
    _commit(package)
    inside = package / "site-packages" / "worker"
    inside.mkdir(parents=True)
    assert release.commit(inside) == release.UNKNOWN


def test_without_git_or_with_a_broken_repository_the_commit_is_unknown(package, monkeypatch):
    (package.parent / ".git").mkdir()
    assert release.commit(package) == release.UNKNOWN
    monkeypatch.setenv("PATH", "/nonexistent")
    assert release.commit(package) == release.UNKNOWN


def test_the_command_says_version_and_commit():
    done = CliRunner().invoke(cli, ["--version"])
    assert (done.exit_code, done.output) == (0, f"archive-fleet {__version__} ({release.commit()})\n")


def test_the_newest_release_in_the_changelog_is_this_version():
    headings = re.findall(r"^## (.*)$", (_ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    assert headings[0] == "Unreleased"
    assert re.fullmatch(rf"{re.escape(__version__)} - \d{{4}}-\d\d-\d\d", headings[1])


def test_the_workflow_runs_what_ci_runs_on_every_python_that_the_package_takes():
    project = tomllib.loads((_ROOT / "pyproject.toml").read_text())["project"]
    first, end = map(int, re.fullmatch(r">=3\.(\d+),<3\.(\d+)", project["requires-python"]).groups())
    workflow = (_ROOT / ".github" / "workflows" / "ci.yml").read_text()
    pythons = json.loads(re.search(r"^ +python: (\[.*\])$", workflow, re.MULTILINE).group(1))
    assert pythons == [f"3.{minor}" for minor in range(first, end)]
    assert re.search(r"run: \.ci/run$", workflow, re.MULTILINE)


def test_the_workflow_may_read_and_nothing_else_and_ends_by_itself():
    workflow = (_ROOT / ".github" / "workflows" / "ci.yml").read_text()
    assert re.findall(r"^permissions:\n((?:  .*\n)+)", workflow, re.MULTILINE) == ["  contents: read\n"]
    assert workflow.count("permissions:") == 1
    assert "timeout-minutes:" in workflow
    assert "cancel-in-progress:" in workflow
    actions = re.findall(r"uses: (\S+)", workflow)
    assert actions
    assert [each for each in actions if not re.fullmatch(r"[\w/-]+@(v\d+|[0-9a-f]{40})", each)] == []


def test_the_release_is_built_with_the_same_versions_in_both_locks():
    def pins(name):
        return set(re.findall(r"^\S+==\S+", (_ROOT / "requirements" / name).read_text(), re.MULTILINE))

    assert pins("build.txt") <= pins("dev.txt")
