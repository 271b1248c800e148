"""``worker status``: real processes on a real database."""

import asyncio
import json
import os
import signal
import sys
from pathlib import Path

from fleet_rows import insert_fleet
from hang_guard import HANG_SECONDS
from worker_command import worker

_ROOT = Path(__file__).parents[3]


async def test_a_database_without_any_activity_has_a_sensible_status(database_url):
    ended = await worker("status", database_url=database_url)
    assert (ended.code, ended.err) == (0, "")
    for words in ("stopped", "worker accounts add", "worker run", "0 calls", "OK", "none found yet"):
        assert words in ended.out


async def test_for_people_it_shows_the_fleet_with_masked_phones(database_url):
    await insert_fleet(database_url)
    ended = await worker("status", database_url=database_url)
    assert (ended.code, ended.err) == (0, "")
    for words in (
        "Ada @ada",
        "+1•••••••01",
        "nas:4711",
        "RESTRICTED",
        "messages.getHistory",
        "1/2 (50%)",
        "Two.zip",
    ):
        assert words in ended.out
    assert "+1000000000" not in ended.out


async def test_the_compact_form_is_one_line(database_url):
    await insert_fleet(database_url)
    ended = await worker("status", "--compact", database_url=database_url)
    assert (ended.code, ended.err) == (0, "")
    assert ended.out.count("\n") == 1
    assert "1 worker, 1/3 accounts | running | Calls: 75/5m | Limits: RESTRICTED (1)" in ended.out


async def test_the_json_has_the_promised_keys_and_masked_phones(database_url):
    await insert_fleet(database_url)
    ended = await worker("status", "--json", database_url=database_url)
    assert (ended.code, ended.err) == (0, "")
    document = json.loads(ended.out)
    assert {"schema_version", "accounts", "workers", "api_activity", "rate_limits", "sync"} <= set(document)
    assert document["accounts"][0]["phone"] == "+1•••••••01"
    assert document["rate_limits"]["active_waits"][0]["wait_seconds"] == 420
    assert document["sync"]["sets"]["ready"] == 3


async def test_forms_that_exclude_each_other_are_refused_in_one_line(database_url):
    ended = await worker("status", "--json", "--watch", database_url=database_url)
    assert (ended.code, ended.out, ended.err.count("\n")) == (2, "", 1)
    assert "exclude each other" in ended.err


async def test_an_old_schema_is_one_line_with_its_remedy(empty_database_url):
    ended = await worker("status", database_url=empty_database_url)
    assert (ended.code, ended.err.count("\n")) == (2, 1)
    assert "worker db upgrade" in ended.err


async def test_watching_refreshes_in_place_and_ctrl_c_ends_it_well(database_url):
    await insert_fleet(database_url)
    terminal, inside = os.openpty()
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "worker", "status", "--watch"),
        env={
            **os.environ,
            "WORKER_DATABASE_URL": database_url,
            "PYTHONPATH": str(_ROOT),
            "TERM": "xterm",
            "COLUMNS": "100",
            "LINES": "50",
        },
        stdin=inside,
        stdout=inside,
        stderr=asyncio.subprocess.PIPE,
        # Whatever runs the tests may have told its children to ignore Ctrl-C.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    os.close(inside)
    shown = b""
    try:
        # Drawn twice: the second time over the first.
        while shown.count(b"Rate limits") < 2:
            shown += await asyncio.wait_for(asyncio.to_thread(os.read, terminal, 65536), HANG_SECONDS)
        process.send_signal(signal.SIGINT)
        draining = asyncio.create_task(asyncio.to_thread(_drain, terminal))
        _, complaints = await asyncio.wait_for(process.communicate(), HANG_SECONDS)
        await draining
    finally:
        os.close(terminal)
        if process.returncode is None:
            process.kill()
    assert (process.returncode, complaints) == (0, b"")
    assert b"nas:4711" in shown


def _drain(terminal: int) -> None:
    """Read on until the other side has closed, so that it is never held up by a full terminal."""
    try:
        while os.read(terminal, 65536):
            pass
    except OSError:
        return
