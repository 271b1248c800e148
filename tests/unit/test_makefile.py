"""The targets that a newcomer meets first."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

_ROOT = Path(__file__).parents[2]
pytestmark = pytest.mark.skipif(shutil.which("make") is None, reason="make is not installed")


def _make(*arguments):
    return subprocess.run(["make", "-C", _ROOT, *arguments], capture_output=True, text=True)


def test_help_is_the_default_and_lists_every_target():
    done = _make("--no-print-directory")
    assert done.returncode == 0
    phony = re.search(r"^\.PHONY: (.*)$", (_ROOT / "Makefile").read_text(), re.MULTILINE).group(1).split()
    assert [line.split()[1] for line in done.stdout.splitlines()] == phony
    assert all(len(line.split()) > 2 for line in done.stdout.splitlines())


@pytest.mark.parametrize("script", ["exit 1", "echo Python 3.9.1; exit 1"])
def test_an_unsuitable_python_is_refused_with_what_to_do_and_nothing_is_made(tmp_path, script):
    python = tmp_path / "python"
    python.write_text(f"#!/bin/sh\n{script}\n")
    python.chmod(0o755)
    done = _make("install", f"PYTHON={python}", f"VENV={tmp_path / 'venv'}")
    assert done.returncode != 0
    assert "Python 3.11 to 3.15 is needed. Try: make PYTHON=" in done.stderr
    assert not (tmp_path / "venv").exists()


def test_what_is_too_long_for_make_test_is_run_by_make_crash():
    tests = _ROOT / "tests"
    long = [path for path in tests.rglob("test_*.py") if re.search(r"mark\.long\b", path.read_text())]
    planned = _make("-n", "crash").stdout
    assert re.search(r"pytest .* tests/crash$", planned, re.MULTILINE)
    assert re.search(r"pytest .* -m long tests/model tests/integration$", planned, re.MULTILINE)
    assert {path.relative_to(tests).parts[0] for path in long} == {"crash", "integration", "model"}


def test_the_locks_name_no_index_and_pin_every_line_with_hashes():
    for lock in (_ROOT / "requirements").glob("*.txt"):
        text = lock.read_text()
        assert not re.search(r"https?://|--(extra-)?index|--find-links", text), lock.name
        pins = re.findall(r"^[a-z0-9].*$", text, re.MULTILINE | re.IGNORECASE)
        assert all("==" in pin and pin.endswith("\\") for pin in pins), lock.name
        assert text.count("--hash=sha256:") >= len(pins), lock.name


def test_the_locks_are_installed_as_they_stand_and_nothing_is_resolved_past_them():
    makefile, dockerfile = (_ROOT / "Makefile").read_text(), (_ROOT / "Dockerfile").read_text()
    assert re.search(r"^PINNED := --require-hashes --no-deps$", makefile, re.MULTILINE)
    installs = re.findall(r"^.*-r requirements/.*$", makefile + dockerfile, re.MULTILINE)
    assert len(installs) >= 5
    assert all("$(PINNED)" in line or "--require-hashes --no-deps" in line for line in installs)


def test_the_hooks_of_git_are_the_parts_of_make_check():
    hooks = re.findall(r"entry: (.*)$", (_ROOT / ".pre-commit-config.yaml").read_text(), re.MULTILINE)
    planned = _make("--no-print-directory", "-n", "check").stdout.splitlines()
    assert planned[-len(hooks) :] == hooks
    assert len(hooks) == 4
