"""The tests must bite: each deliberate mistake below makes the test that guards against it fail."""

import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True)
class Mutant:
    name: str
    edits: tuple[tuple[str, str, str], ...]
    caught_by: str


MUTANTS = [
    Mutant(
        "a set is written without looking at its fence",
        (
            (
                "worker/store/sets.py",
                "WHERE id = :set AND fence = :fence AND state",
                "WHERE id = :set AND :fence > 0 AND state",
            ),
        ),
        "tests/integration/store/test_fences.py::test_an_old_owner_writes_nothing_after_a_new_one_has_claimed",
    ),
    Mutant(
        "an intent is written without looking at its fence",
        (
            (
                "worker/store/uploads.py",
                "WHERE id = :upload AND fence = :fence AND",
                "WHERE id = :upload AND :fence > 0 AND",
            ),
        ),
        "tests/integration/store/test_fences.py::test_an_intent_that_was_taken_over_lets_its_old_owner_write_nothing",
    ),
    Mutant(
        "the intent is ignored: nothing is looked for, and ids are made anew",
        (
            ("worker/recovery/intents.py", "    while missing and (page :=", "    while False and (page :="),
            ("worker/pipeline/publish.py", "posting, part.random_id)", "posting, secrets.randbits(63))"),
        ),
        "tests/crash/test_race.py::test_a_message_applied_without_an_answer_is_adopted_not_sent_again",
    ),
    Mutant(
        "a retry sends with a fresh random_id",
        (("worker/pipeline/publish.py", "posting, part.random_id)", "posting, secrets.randbits(63))"),),
        "tests/crash/test_race.py::test_a_message_that_is_applied_late_is_not_sent_twice",
    ),
    Mutant(
        "the cursor is committed before the rows",
        (
            (
                "worker/pipeline/scan.py",
                (
                    "        kept = await keep_files(connection, source.channel_id, messages)\n"
                    "        await keep_photos(connection, source, page)\n"
                    "        await advance_cursor(connection, source, newest, len(page))\n"
                ),
                (
                    "        await advance_cursor(connection, source, newest, len(page))\n"
                    '    async with deps.database.transaction("scan.rows") as connection:\n'
                    "        kept = await keep_files(connection, source.channel_id, messages)\n"
                ),
            ),
        ),
        "tests/crash/test_race.py::test_a_kill_right_after_a_page_loses_no_archive_of_it",
    ),
    Mutant(
        "a busy lock is not asked for",
        (
            (
                "worker/pipeline/deduplicate.py",
                "if not await deps.locks.try_content(content_hash):",
                "if await deps.locks.try_content(content_hash) is None:",
            ),
        ),
        "tests/crash/test_race.py::test_two_processes_held_at_the_point_of_upload_make_one_message",
    ),
]


@pytest.mark.long
@pytest.mark.timeout(240)
@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_the_mistake_is_caught(mutant, tmp_path):
    for part in ("worker", "tests", "alembic"):
        shutil.copytree(ROOT / part, tmp_path / part, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    for file, old, new in mutant.edits:
        source = (tmp_path / file).read_text()
        assert source.count(old) == 1, f"{file} no longer has the line that this mutant breaks"
        (tmp_path / file).write_text(source.replace(old, new))
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-n", "0", "-p", "no:cacheprovider", mutant.caught_by],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
    )
    # 1 says that a test failed; anything else that the mutant could not even be tried.
    assert done.returncode == 1, done.stdout[-3000:]
    assert "1 failed" in done.stdout
