"""The way in which a person can call the program again."""

import sys

import pytest

from worker.cli.calling import program, shown_path


@pytest.fixture
def installed(tmp_path, monkeypatch):
    """A folder with an environment in it, in which the person stands; nothing of it is on the PATH."""
    script = tmp_path / ".venv" / "bin" / "worker"
    script.parent.mkdir(parents=True)
    script.write_text("#!/bin/sh\n")
    script.chmod(0o755)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    return script


def test_below_the_working_folder_it_is_called_by_its_path_from_there(installed):
    assert program(str(installed), sys.executable) == ".venv/bin/worker"


def test_a_program_of_that_name_on_the_path_is_called_by_its_name_if_it_is_the_same(installed, monkeypatch):
    monkeypatch.setenv("PATH", str(installed.parent))
    assert program(str(installed), sys.executable) == "worker"


def test_another_program_of_that_name_on_the_path_is_not_ours(installed, tmp_path, monkeypatch):
    other = tmp_path / "other" / "worker"
    other.parent.mkdir()
    other.write_text("#!/bin/sh\n")
    other.chmod(0o755)
    monkeypatch.setenv("PATH", str(other.parent))
    assert program(str(installed), sys.executable) == ".venv/bin/worker"


def test_from_another_folder_it_is_called_by_its_whole_path_quoted_for_the_shell(
    installed, tmp_path, monkeypatch
):
    spaced = tmp_path / "my env" / "worker"
    spaced.parent.mkdir()
    installed.rename(spaced)
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    assert program(str(spaced), sys.executable) == f"'{spaced}'"


def test_in_its_own_folder_the_shell_needs_to_be_told(installed, monkeypatch):
    monkeypatch.chdir(installed.parent)
    assert program(str(installed), sys.executable) == "./worker"


def test_started_as_a_module_it_is_the_one_beside_the_interpreter_or_the_module_again(installed):
    module = "/somewhere/worker/__main__.py"
    assert program(module, str(installed.with_name("python"))) == ".venv/bin/worker"
    assert program(module, "/nowhere/python") == "/nowhere/python -m worker"


def test_a_path_below_the_working_folder_is_shown_from_there(installed, tmp_path):
    assert shown_path(tmp_path / ".worker" / "demo") == ".worker/demo"
    assert shown_path(tmp_path.parent) == str(tmp_path.parent)
