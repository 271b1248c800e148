"""The line at the end of a run that names what was skipped."""

from skip_report import LACKING, line


def test_what_was_skipped_is_named_once_each_with_what_to_install():
    reasons = [
        LACKING + "pgbouncer",
        "pgbouncer is not installed",
        LACKING + "rar, rar6",
        "the kernel has no Landlock",
    ]
    assert line(reasons) == (
        "skipped 4: pgbouncer (apt install pgbouncer), rar (apt install rar), rar6 (a rar before 7.0),"
        " the kernel has no Landlock — make test-all installs and runs them"
    )


def test_where_nothing_is_missing_nothing_is_offered():
    assert line(["the kernel has no Landlock"] * 2) == "skipped 2: the kernel has no Landlock (2)"
