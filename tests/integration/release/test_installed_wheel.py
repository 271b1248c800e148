"""The wheel by itself: in an environment that has nothing else, away from the checkout."""

import json
import re
import shutil
import sys
from pathlib import Path

import pytest
from distributions import ROOT, run
from skip_report import lacking

from worker import __version__, release
from worker.archives.sevenzip_library import UNREADABLE
from worker.store.migrations import head


def _pins():
    """The locked versions as pip's constraints; with hashes pip would want one of the wheel, too."""
    locks = (ROOT / "requirements").glob("*.txt")
    lock = "\n".join(path.read_text() for path in locks)
    return "\n".join(re.findall(r"^([\w.-]+==\S+(?: ;[^\\]*)?)", lock, re.MULTILINE))


@pytest.fixture
def installed(dist, tmp_path):
    """The folder with the commands of an environment into which pip has put the wheel and what it asks for."""
    if UNREADABLE and shutil.which("cc") is None:
        lacking(
            "a C compiler"
        )  # pip builds what this Python has no wheel for; `make install` does without it
    (tmp_path / "pins.txt").write_text(_pins())
    run(sys.executable, "-m", "venv", str(tmp_path / "venv"))
    commands = tmp_path / "venv" / "bin"
    run(
        *(str(commands / "python"), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"),
        *("-c", str(tmp_path / "pins.txt"), f"{dist.wheel}[embedded]"),
    )
    return commands


@pytest.mark.timeout(400)
def test_the_wheel_alone_runs_the_demo_in_an_empty_environment(installed, tmp_path):
    where = run(str(installed / "python"), "-c", "import worker; print(worker.__file__)", cwd=tmp_path)
    assert Path(where.strip()).is_relative_to(tmp_path / "venv")

    def worker(*arguments):
        return run(
            str(installed / "worker"), *arguments, cwd=tmp_path, WORKER_DATA_DIR=str(tmp_path / "data")
        )

    assert worker("--version") == f"archive-fleet {__version__} ({release.commit(ROOT / 'worker')})\n"
    assert worker("db", "upgrade") == f"schema {head()}\n"
    assert worker("db", "current") == f"{head()} (this version needs {head()})\n"
    done = json.loads(worker("demo", "--json", "--state", str(tmp_path / "demo")))
    assert done["failed"] == []
    assert done["ledger"]["message_sets"] == done["ledger"]["unique_contents"] > 0
    assert done["ledger"]["doubled"] == done["ledger"]["lost"] == done["ledger"]["unexpected"] == 0
