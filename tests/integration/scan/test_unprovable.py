"""Sets that nothing can prove whole: encrypted headers hide whether the volumes are all."""

import json
import os

from hidden_volumes import hidden_volume
from recovering import recover
from worker_command import worker
from world import PHONES

ONE_ACCOUNT = ("--account", PHONES[0])


async def test_what_can_never_be_proven_says_so_while_it_waits_and_is_published_with_a_mark(
    world, run, sets, tmp_path
):
    salt = os.urandom(16)
    volumes = [hidden_volume(tmp_path / f"a.part{number}.rar", salt) for number in (1, 2)]
    await world.post_files(world.sources[0], volumes)
    await run()
    state, reason, _ = (await sets())["a.rar"]
    assert state == "collecting"
    assert reason.endswith("if no further part comes within 3d 0h, it is published as unproven")
    world.settings["WORKER_FLEET__UNPROVEN_AFTER_SECS"] = "0"
    await world.fetch("UPDATE archive_sets SET not_before = fleet_now()")
    await run()
    assert await sets() == {"a.rar": ("indexed", None, 2)}
    (row,) = await world.fetch("SELECT marks FROM packages")
    assert "unproven" in row["marks"]


async def test_a_set_whose_file_references_run_out_at_once_is_given_up_visibly(world, run, sets):
    world.settings["WORKER_FLEET__MAX_ATTEMPTS"] = "1"
    await world.post_files(world.sources[0], world.make_volumes())
    await world.admin.add_rule("upload.getFile", "error", code=400, text="FILE_REFERENCE_INVALID", count=0)
    await run()
    state, reason, _ = (await sets())["volumes-1.zip"]
    assert state == "failed"
    assert "FILE_REFERENCE_INVALID" in reason
    told = await worker("status", "--json", database_url=world.database_url)
    assert any("given up" in item["why"] for item in json.loads(told.out)["sync"]["waiting"])


async def test_a_set_that_has_lost_a_file_since_it_was_published_is_not_published_again_without_it(
    world, run, sets, tmp_path
):
    world.settings |= {"WORKER_FLEET__UNPROVEN_AFTER_SECS": "0", "WORKER_FLEET__REPUBLISH_DELETED": "true"}
    salt = os.urandom(16)
    volumes = [hidden_volume(tmp_path / f"a.part{number}.rar", salt) for number in (1, 2, 3)]
    posted = await world.post_files(world.sources[0], volumes)
    await run()
    await world.fetch("UPDATE archive_sets SET not_before = fleet_now()")
    await run()
    assert await sets() == {"a.rar": ("indexed", None, 3)}
    await world.admin.delete_messages(world.sources[0], [posted[-1]])
    await run()
    published = [m["id"] for m in await world.admin.messages(world.destination) if m["document_id"]]
    await world.admin.delete_messages(world.destination, published)
    await recover(world, *ONE_ACCOUNT)
    await run()
    state, reason, _ = (await sets())["a.rar"]
    assert state == "ready"
    assert "some of the messages of a.rar are gone" in reason
    standing = [m for m in await world.admin.messages(world.destination) if not m["deleted"]]
    assert not any(m["document_id"] for m in standing)
