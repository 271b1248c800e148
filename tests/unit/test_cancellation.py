"""A cancelled task ends: nothing on its way takes its cancellation for that of another."""

import ast
import asyncio
from pathlib import Path

import pytest

from worker.store.notifications import _first

WORKER = Path(__file__).parents[2] / "worker"
# Where a cancellation ends on purpose, and the lines beside it say why.
ON_PURPOSE = {"flow/runner.py", "sandbox/admin/door.py"}


async def test_a_listener_that_is_cancelled_while_it_tidies_up_ends():
    tidying, tidied = asyncio.Event(), asyncio.Event()

    async def slow_to_end():
        try:
            await asyncio.Event().wait()
        finally:
            tidying.set()
            await tidied.wait()

    waiting = asyncio.create_task(_first(asyncio.sleep(0), slow_to_end()))
    await tidying.wait()
    waiting.cancel()
    tidied.set()
    with pytest.raises(asyncio.CancelledError):
        await waiting


def _suppresses_cancellation(node):
    """Whether this is ``suppress(…CancelledError…)``."""
    return (
        isinstance(node, ast.Call)
        and ast.unparse(node.func).endswith("suppress")
        and any("CancelledError" in ast.unparse(argument) for argument in node.args)
    )


def test_nothing_waits_in_a_way_that_drops_a_cancellation():
    """``asyncio.wait_for`` does, before Python 3.12, when what it waits for ends at the same moment."""
    found = {
        f"{path.relative_to(WORKER)}:{node.lineno}"
        for path in WORKER.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Attribute) and node.attr == "wait_for"
    }
    assert found == set()


def test_nothing_swallows_a_cancellation():
    found = {
        str(path.relative_to(WORKER))
        for path in WORKER.rglob("*.py")
        if any(map(_suppresses_cancellation, ast.walk(ast.parse(path.read_text()))))
    }
    assert found == ON_PURPOSE
