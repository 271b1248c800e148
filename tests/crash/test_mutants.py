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


# Of those mistakes too that this would notice.
_BELIEVES_GAPS = (
    "worker/pipeline/scan.py",
    "    if source.sees_all and source.can_hide:",
    "    if source.sees_all and source.can_hide and False:",
)
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
            (
                "worker/recovery/reconcile.py",
                "    while missing and (page :=",
                "    while False and (page :=",
            ),
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
                    "        kept = await keep_page(connection, source, messages)\n"
                    "        await advance_cursor(connection, source, newest, fresh)\n"
                ),
                (
                    "        await advance_cursor(connection, source, newest, fresh)\n"
                    '    async with deps.database.transaction("scan.rows") as connection:\n'
                    "        kept = await keep_page(connection, source, messages)\n"
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
        "tests/crash/test_waiting.py::test_a_busy_content_is_looked_at_again_later_never_given_up",
    ),
    Mutant(
        "a part that failed is passed over",
        (
            (
                "worker/pipeline/publish.py",
                "            await _send_part(deps, claim, intent, part, channel, marking, content)\n",
                (
                    '            with __import__("contextlib").suppress(Exception):\n'
                    "                await _send_part(deps, claim, intent, part, channel, marking, content)\n"
                ),
            ),
        ),
        "tests/crash/test_parts.py::test_a_part_that_is_refused_holds_back_those_after_it",
    ),
    Mutant(
        "a busy lock ends the set as if it were a duplicate",
        (
            (
                "worker/pipeline/run.py",
                "give_up=verdict.gives_up,",
                'give_up=type(error).__name__ == "BusyError",',
            ),
        ),
        "tests/crash/test_waiting.py::test_a_busy_content_is_looked_at_again_later_never_given_up",
    ),
    Mutant(
        "the content's lock is taken on a pooled connection",
        (
            (
                "worker/pipeline/deduplicate.py",
                "await deps.locks.try_content(content_hash)",
                'await _pooled(deps, content_hash, "pg_try_advisory_lock")',
            ),
            (
                "worker/pipeline/deduplicate.py",
                "await deps.locks.release_content(content_hash)",
                'await _pooled(deps, content_hash, "pg_advisory_unlock")',
            ),
            (
                "worker/pipeline/deduplicate.py",
                "@contextlib.asynccontextmanager\nasync def only",
                (
                    "async def _pooled(deps, content_hash, function):\n"
                    "    from worker.domain.content import lock_key\n"
                    "    async with deps.database.reading() as connection:\n"
                    '        query = f"SELECT {function}({lock_key(content_hash)})"\n'
                    "        return (await connection.exec_driver_sql(query)).scalar_one()\n\n\n"
                    "@contextlib.asynccontextmanager\nasync def only"
                ),
            ),
        ),
        "tests/crash/test_waiting.py::test_a_content_is_locked_on_a_connection_that_nothing_else_uses",
    ),
    Mutant(
        "the loser deletes messages that a package refers to",
        (
            (
                "worker/store/removals.py",
                "WHERE k.dest_channel_id = u.destination_id AND",
                "WHERE false AND",
            ),
        ),
        "tests/integration/store/test_removals.py::test_the_messages_of_a_package_are_never_left_over",
    ),
    Mutant(
        "an intent is made beside a live one",
        (
            (
                "worker/pipeline/deduplicate.py",
                "    if intent is not None:",
                "    if intent is not None and False:",
            ),
        ),
        "tests/crash/test_waiting.py::test_an_open_intent_of_another_account_is_waited_for_by_name_and_longer_each_time",
    ),
    Mutant(
        "a commit whose answer was lost is taken for a failure",
        (("worker/pipeline/record.py", "    except OutcomeUnknownError:", "    except ZeroDivisionError:"),),
        "tests/integration/store/test_removals.py::test_a_stub_whose_commit_got_no_answer_is_read_back_and_counts",
    ),
    Mutant(
        "no access is taken for gone",
        (
            (
                "worker/recovery/withdrawal.py",
                "if held else Judged(standing, (), changed, absent)",
                "if True else Judged(standing, (), changed, absent)",
            ),
        ),
        "tests/unit/recovery/test_withdrawal.py::test_nothing_is_gone_where_nothing_could_be_read",
    ),
    Mutant(
        "a page is believed whatever has become of the account's membership",
        (
            (
                "worker/pipeline/sight.py",
                "    if is_outdated(deps, source):",
                "    if is_outdated(deps, source) and False:",
            ),
            _BELIEVES_GAPS,
        ),
        "tests/integration/scan/test_sight.py::test_an_account_let_in_again_in_the_middle_of_its_reading_passes_over_nothing_for_the_others",
    ),
    Mutant(
        "how much an account sees is asked once and never again",
        (
            ("worker/fleet/connection.py", "seen, connecting=True)", "seen)"),
            (
                "worker/store/channels.py",
                "coalesce(memberships.member_since = CAST(:since AS bigint), true)",
                "coalesce(CAST(:since AS bigint) > 0, true)",
            ),
            ("worker/pipeline/sight.py", "and told != readable.member_since", "and False"),
            _BELIEVES_GAPS,
        ),
        "tests/integration/scan/test_sight.py::test_an_account_let_in_again_between_two_connections_passes_over_nothing_for_the_others",
    ),
    Mutant(
        "what a page lacks below its first message is taken for deleted",
        (_BELIEVES_GAPS,),
        "tests/integration/scan/test_sight.py::test_a_history_that_is_cleared_between_two_pages_is_not_passed_over_for_the_others",
    ),
    Mutant(
        "whatever is missing is withdrawn without asking",
        (("worker/domain/disappearance.py", "min(_MOST, packages // _ONE_IN)", "packages"),),
        "tests/crash/test_missing_packages.py::test_a_cleared_history_withdraws_nothing_and_holds_the_destination_up_until_it_is_seen_again",
    ),
    Mutant(
        "what stands of a split package does not keep it from being sent again",
        (
            (
                "worker/pipeline/deduplicate.py",
                "    if remains is not None:",
                "    if remains is not None and False:",
            ),
        ),
        "tests/crash/test_remains.py::test_its_content_waits_for_what_cannot_be_removed_and_says_so",
    ),
    Mutant(
        "parts are cut anew before it is known which were sent",
        (
            (
                "worker/recovery/intents.py",
                "        intent = await look_above_floor(deps, intent)\n",
                (
                    "        intent = await _fit(deps, intent)\n"
                    "        intent = await look_above_floor(deps, intent)\n"
                ),
            ),
            (
                "worker/recovery/intents.py",
                'if any(part.state != "planned" for part in too_large):',
                "if False:",
            ),
            ("worker/recovery/intents.py", 'if part.state == "planned"]', 'if part.state != "sent"]'),
            ("worker/store/open_intents.py", "AND state = 'planned'\"", "AND state <> 'sent'\""),
        ),
        "tests/crash/test_parts.py::test_a_part_that_was_sent_unheard_is_found_before_anything_is_cut_anew",
    ),
    Mutant(
        "an account is taken over while a worker runs it",
        (
            (
                "worker/recovery/take_over.py",
                "if not await deps.locks.try_account(account_id):",
                "if await deps.locks.try_account(account_id) is None:",
            ),
        ),
        "tests/crash/test_take_over.py::test_an_account_that_a_worker_runs_is_not_taken_over",
    ),
    Mutant(
        "a marker is believed whoever wrote it",
        (
            (
                "worker/domain/marker_code.py",
                "return any(hmac.compare_digest(",
                "return True or any(hmac.compare_digest(",
            ),
        ),
        "tests/unit/domain/test_marker_code.py::test_w1_in_a_channel_the_document_tells_ours_from_a_copied_caption",
    ),
]


@pytest.mark.long
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
