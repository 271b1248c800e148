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
            elif name.startswith("fuzz-"):
                damages[name.removeprefix("fuzz-")] += value
    if damages:
        terminalreporter.section("damaged archives examined")
        terminalreporter.write_line(", ".join(f"{count} {damage}" for damage, count in damages.items()))
    if not formats:
        return
    terminalreporter.section("archive samples listed, per format")
    for form, count in [*sorted(formats.items()), ("all", formats.total())]:
        terminalreporter.write_line(f"{form:<16} {count:>3}")
    compared = ", ".join(f"{tool} ({count})" for tool, count in tools.most_common())
    terminalreporter.write_line(f"compared with: {compared}")
