"""A destination that is chosen while a worker runs is looked through before anything is published there."""

import asyncio
import io
import os
import signal
import zipfile

from test_looking_through import ONE, _published_before, _standing, world  # noqa: F401 - the fixture


async def test_a_destination_that_is_chosen_while_a_worker_runs_is_looked_through_too(world):  # noqa: F811
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr("a.txt", os.urandom(5000))
    body = packed.getvalue()
    there = await _published_before(world, body, 0, len(body))
    await world.fetch("UPDATE channels SET is_destination = false")
    wrong = (await world.admin.create_channel("Wrong", admins=[ONE[1]]))["channel_id"]
    await world.fetch(
        "INSERT INTO channels (telegram_id, title, kind, is_destination) VALUES ($1, 'Wrong', 'channel', true)",
        wrong,
    )
    pid = world.workers.start("run", *ONE, env=world.env(WORKER_FLEET__CYCLE_SECS="1"))
    await world.post_archive(world.sources[0])
    await world.until("SELECT count(*) > 0 FROM packages")
    await world.fetch("UPDATE channels SET is_destination = false")
    await world.fetch("UPDATE channels SET is_destination = true WHERE telegram_id = $1", world.destination)
    path = world.folder / "same.zip"
    path.write_bytes(body)
    await world.admin.post_document(world.sources[0], path, "same.zip")
    await world.until("SELECT count(package_id) = 2 FROM archive_sets")
    os.kill(pid, signal.SIGTERM)
    await asyncio.to_thread(world.workers.wait, pid)
    assert await _standing(world) == [there]
