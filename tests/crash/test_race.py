"""Two processes meet at the same content."""

import asyncio
import os
import signal
import time

from world import PHONES, open_world


async def test_two_processes_held_at_the_point_of_upload_make_one_message(tmp_path, database_url):
    async with open_world(tmp_path, database_url) as world:
        # The same bytes as two documents, one per source: only the hash can tell.
        path = await world.post_archive(world.sources[0])
        await world.admin.post_document(world.sources[1], path, "same bytes.zip")
        await world.admin.kick(world.sources[1], PHONES[0])
        await world.admin.kick(world.sources[0], PHONES[1])
        await world.forget_membership(PHONES[0], world.sources[1])
        await world.forget_membership(PHONES[1], world.sources[0])

        # Each stops itself right before it asks for the content's lock, with its own download done.
        held = "stop=lock.content:before:1"
        # One set at a time: a process that is stopped while it claims another one holds up whoever claims.
        env = world.env(held, WORKER_FLEET__SETS_IN_FLIGHT="1")
        pids = [world.workers.start("run", "--once", "--account", phone, env=env) for phone in PHONES]
        for pid in pids:
            assert await asyncio.to_thread(world.workers.until_stopped, pid) == {"stopped": True}
        for pid in pids:
            os.kill(pid, signal.SIGCONT)
        for pid in pids:
            assert await asyncio.to_thread(world.workers.wait, pid) == {"exit": 0}, world.workers.logs[
                -1
            ].read_text()

        await world.drain()
        await world.check_invariants()
        states = sorted(row["state"] for row in await world.fetch("SELECT state FROM archive_sets"))
        assert states == ["duplicate", "indexed"]


async def test_a_message_applied_without_an_answer_is_adopted_not_sent_again(tmp_path, database_url):
    async with open_world(tmp_path, database_url) as world:
        await world.post_archive(world.sources[0])
        await world.admin.add_rule("messages.sendMedia", "drop_reply")
        await world.drain("--account", PHONES[0])
        await world.check_invariants()
        assert sum(call["ok"] for call in await world.admin.calls("messages.sendMedia")) == 1


async def test_a_repeated_random_id_answered_as_an_error_is_found_by_its_marker(tmp_path, database_url):
    async with open_world(tmp_path, database_url) as world:
        await world.post_archive(world.sources[0])
        await world.admin.set_repeats(as_errors=True)
        ended = await world.run(
            "run", "--once", "--account", PHONES[0], faults="kill=telegram.messages.SendMedia:after:1"
        )
        assert ended == {"signal": 9}
        await world.drain("--account", PHONES[0])
        await world.check_invariants()


async def test_sigterm_drains_and_the_rest_is_done_by_the_next_run(tmp_path, database_url):
    async with open_world(tmp_path, database_url) as world:
        for _ in range(5):
            await world.post_archive(world.sources[0])
        env = world.env("stop=db.packages.stub:after:1", WORKER_FLEET__SETS_IN_FLIGHT="3")
        pid = world.workers.start("run", "--account", PHONES[0], env=env)
        assert await asyncio.to_thread(world.workers.until_stopped, pid) == {"stopped": True}
        os.kill(pid, signal.SIGTERM)
        os.kill(pid, signal.SIGCONT)
        assert await asyncio.to_thread(world.workers.wait, pid) == {"exit": 0}, world.workers.logs[
            -1
        ].read_text()
        indexed = await world.fetch("SELECT 1 FROM archive_sets WHERE state = 'indexed'")
        # Those in flight are finished, nothing else is begun.
        assert 1 <= len(indexed) <= 3
        await world.drain("--account", PHONES[0])
        await world.check_invariants()


async def test_a_message_that_is_applied_late_is_not_sent_twice(tmp_path, database_url):
    async with open_world(tmp_path, database_url) as world:
        await world.post_archive(world.sources[0])
        rule = await world.admin.add_rule("messages.sendMedia", "delay", seconds=None)
        pid = world.workers.start("run", "--once", "--account", PHONES[0], env=world.env())
        await world.until_hit(rule)
        os.kill(pid, signal.SIGKILL)
        await asyncio.to_thread(world.workers.wait, pid)
        draining = asyncio.create_task(world.drain("--account", PHONES[0]))
        # The server holds the first send until the next owner has tried to send the same.
        while not draining.done() and not await world.admin.calls("messages.sendMedia"):
            await asyncio.to_thread(time.sleep, 0.05)
        await world.admin.lift_rule(rule)
        await draining
        assert [call["ok"] for call in await world.admin.calls("messages.sendMedia")].count(False) >= 1
        await world.check_invariants()


async def test_a_kill_right_after_a_page_loses_no_archive_of_it(tmp_path, database_url):
    async with open_world(tmp_path, database_url) as world:
        for _ in range(3):
            await world.post_archive(world.sources[0])
        for edge in ("before", "after"):
            await world.run("run", "--once", "--account", PHONES[0], faults=f"kill=db.scan.page:{edge}:1")
        await world.drain("--account", PHONES[0])
        await world.check_invariants()
