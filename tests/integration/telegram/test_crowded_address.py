"""Telegram takes only so many connections from one address."""

from running_sandbox import RunningSandbox
from transfer_bench import MIB, open_desk

SIZE = 48 * MIB + 777


async def test_a_file_goes_up_and_comes_down_over_the_few_connections_that_are_taken(tmp_path):
    running = RunningSandbox.start("--connections-per-address", "3", "--record-all-calls")
    try:
        async with open_desk(running, "+49877777", tmp_path) as desk:
            posted, digest = await desk.post(SIZE)
            assert await desk.download(posted) == digest
            assert await desk.publish(desk.folder / "part-0") == digest
            failed = [call for call in await running.admin.calls() if not call["ok"]]
            assert failed == [], "what was asked on a refused connection is asked once, elsewhere"
    finally:
        running.stop()
