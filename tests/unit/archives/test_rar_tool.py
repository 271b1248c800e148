"""Looking for the program that unpacks RAR."""

from pathlib import Path

import pytest

from worker.archives import rar_tool


@pytest.mark.parametrize("search", [None, "", ":", ".", "bin"])
def test_no_program_of_the_working_folder_is_taken(tmp_path, monkeypatch, search):
    """Others may put one there; so may an archive that was unpacked."""
    for folder in (tmp_path, tmp_path / "bin"):
        folder.mkdir(exist_ok=True)
        program = folder / "unrar"
        program.write_text("#!/bin/sh\necho Alexander Roshal\n")
        program.chmod(0o755)
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("PATH", raising=False)
    if search is not None:
        monkeypatch.setenv("PATH", search)
    monkeypatch.setattr(rar_tool, "PLACES", str(tmp_path / "none"))
    assert rar_tool.find_tool() is None


def test_a_program_on_the_path_is_taken(tmp_path, monkeypatch):
    program = tmp_path / "unrar"
    program.write_text("#!/bin/sh\necho Alexander Roshal\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    found = rar_tool.find_tool()
    assert found is not None
    assert Path(found.path) == program.resolve()
