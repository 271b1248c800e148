"""The line at the end of a run that names what was skipped."""

from pathlib import Path

from skip_report import LACKING, PACKAGES, line


def test_what_was_skipped_is_named_once_each_with_what_to_install():
    reasons = [
        LACKING + "pgbouncer",
        "pgbouncer is not installed",
        LACKING + "rar, rar6",
        "the kernel has no Landlock",
    ]
    assert line(reasons) == (
        "skipped 4: pgbouncer (apt install pgbouncer), rar (apt install rar), rar6 (a rar before 7.0),"
        " the kernel has no Landlock — make test-all installs what it can and runs all"
    )


def test_where_nothing_is_missing_nothing_is_offered():
    assert line(["the kernel has no Landlock"] * 2) == "skipped 2: the kernel has no Landlock (2)"


def test_what_the_line_says_to_install_is_what_make_test_all_installs():
    script = (Path(__file__).parents[1] / "install_tools.sh").read_text().split()
    assert [name for names in PACKAGES.values() for name in names.split() if name not in script] == []
