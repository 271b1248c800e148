"""One line at the end of a run: what was skipped, and how to get what it needs.

A test that cannot run here says why with :func:`lacking`, or in words of its own.
"""

import re
from collections import Counter

import pytest

LACKING = "not installed here: "
_MISSING = re.compile(rf"{LACKING}(.+)|(.+) is not installed")
# What Debian calls the package that has a program; tests/install_tools.sh installs them all.
PACKAGES = {
    "a C compiler": "gcc python3-dev",
    "bsdtar": "libarchive-tools",
    "bzip2": "bzip2",
    "pgbouncer": "pgbouncer",
    "PostgreSQL": "postgresql",
    "rar": "rar",
    "xz": "xz-utils",
    "zip": "zip",
    "zstd": "zstd",
}
ELSEWHERE = {"rar6": "a rar before 7.0"}


def lacking(*things):
    """Skip the test for want of these programs."""
    # Told of the test that asked, and not of this line.
    raise pytest.skip.Exception(LACKING + ", ".join(things), _use_item_location=True)


def write(terminalreporter):
    """Write the line, if anything was skipped."""
    reasons = [_reason(report) for report in terminalreporter.stats.get("skipped", [])]
    if reasons:
        terminalreporter.write_line(line(reasons))


def line(reasons):
    """All that was skipped, each cause once, the programs with where to get them."""
    things, others = Counter(), Counter()
    for reason in reasons:
        if found := _MISSING.fullmatch(reason):
            things.update((found[1] or found[2]).split(", "))
        else:
            others[reason] += 1
    named = [_with_source(thing) for thing in sorted(things)]
    named += [reason if count == 1 else f"{reason} ({count})" for reason, count in sorted(others.items())]
    help_ = " — make test-all installs what it can and runs all" if things else ""
    return f"skipped {len(reasons)}: {', '.join(named)}{help_}"


def _with_source(thing):
    if thing in PACKAGES:
        return f"{thing} (apt install {PACKAGES[thing]})"
    return f"{thing} ({ELSEWHERE[thing]})" if thing in ELSEWHERE else thing


def _reason(report):
    return re.sub(r"^Skipped: ", "", report.longrepr[2]) if isinstance(report.longrepr, tuple) else "?"
