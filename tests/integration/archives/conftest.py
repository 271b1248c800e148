import sys
from collections import Counter
from pathlib import Path

import pytest_asyncio

sys.path.insert(0, str(Path(__file__).parent))

from worker.archives.nursery import Nursery


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def nursery():
    async with Nursery() as opened:
        yield opened


def pytest_terminal_summary(terminalreporter):
    formats, tools, damages = Counter(), Counter(), Counter()
    for report in terminalreporter.stats.get("passed", []):
        for name, value in report.user_properties:
            if name == "sample-format":
                formats[value] += 1
            elif name == "compared-with":
                tools[value] += 1
            elif name == "fuzz":
                form, damage, verdict, count = value
                damages[damage, form, verdict] += count
    if damages:
        write_damages(terminalreporter, damages)
    if not formats:
        return
    terminalreporter.section("archive samples listed, per format")
    for form, count in [*sorted(formats.items()), ("all", formats.total())]:
        terminalreporter.write_line(f"{form:<16} {count:>3}")
    compared = ", ".join(f"{tool} ({count})" for tool, count in tools.most_common())
    terminalreporter.write_line(f"compared with: {compared}")


def write_damages(terminalreporter, damages):
    terminalreporter.section("damaged archives examined")
    terminalreporter.write_line(f"{'':<11} {'format':<16} {'tried':>6} {'marked':>6}  not marked, by reason")
    totals = Counter()
    for damage, form in sorted({key[:2] for key in damages}):
        verdicts = {verdict: n for (d, f, verdict), n in damages.items() if (d, f) == (damage, form)}
        for verdict, count in verdicts.items():
            totals[damage, "all", verdict] += count
        write_row(terminalreporter, damage, form, verdicts)
    for damage in sorted({key[0] for key in totals}):
        write_row(terminalreporter, damage, "all", {v: n for (d, _, v), n in totals.items() if d == damage})


def write_row(terminalreporter, damage, form, verdicts):
    rest = ", ".join(
        f"{count} {verdict}" for verdict, count in sorted(verdicts.items()) if verdict != "marked"
    )
    tried, marked = sum(verdicts.values()), verdicts.get("marked", 0)
    terminalreporter.write_line(f"{damage:<11} {form:<16} {tried:>6} {marked:>6}  {rest}")
