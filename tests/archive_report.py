"""What was tried with archives, as tables at the end of a run.

The tests of archives leave the facts as properties. They are gathered here because the process that reports
reads no conftest below this folder when the tests run in others.
"""

from collections import Counter


def write(terminalreporter):
    """Write the tables, if any test left facts for them."""
    formats, tools, silent, damages = Counter(), Counter(), Counter(), Counter()
    for report in terminalreporter.stats.get("passed", []):
        for name, value in report.user_properties:
            if name == "sample-format":
                formats[value] += 1
            elif name == "compared-with":
                tools[value] += 1
            elif name == "not-read-by":
                silent[value] += 1
            elif name == "fuzz":
                form, damage, verdict, count = value
                damages[damage, form, verdict] += count
    if damages:
        _write_damages(terminalreporter, damages)
    if not formats:
        return
    terminalreporter.section("archive samples listed, per format")
    for form, count in [*sorted(formats.items()), ("all", formats.total())]:
        terminalreporter.write_line(f"{form:<16} {count:>3}")
    terminalreporter.write_line(f"compared with: {_counted(tools)}")
    if silent:
        terminalreporter.write_line(
            f"broken off by the other tool, compared as far as it came: {_counted(silent)}"
        )


def _counted(counter):
    return ", ".join(f"{what} ({count})" for what, count in counter.most_common())


def _write_damages(terminalreporter, damages):
    terminalreporter.section("damaged archives examined")
    terminalreporter.write_line(f"{'':<11} {'format':<16} {'tried':>6} {'marked':>6}  not marked, by reason")
    totals = Counter()
    for damage, form in sorted({key[:2] for key in damages}):
        verdicts = {verdict: n for (d, f, verdict), n in damages.items() if (d, f) == (damage, form)}
        for verdict, count in verdicts.items():
            totals[damage, "all", verdict] += count
        _write_row(terminalreporter, damage, form, verdicts)
    for damage in sorted({key[0] for key in totals}):
        _write_row(terminalreporter, damage, "all", {v: n for (d, _, v), n in totals.items() if d == damage})


def _write_row(terminalreporter, damage, form, verdicts):
    rest = ", ".join(
        f"{count} {verdict}" for verdict, count in sorted(verdicts.items()) if verdict != "marked"
    )
    tried, marked = sum(verdicts.values()), verdicts.get("marked", 0)
    terminalreporter.write_line(f"{damage:<11} {form:<16} {tried:>6} {marked:>6}  {rest}")
