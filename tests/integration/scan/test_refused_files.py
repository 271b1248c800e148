"""Files that Telegram will not give out: a set of them is given up visibly, not asked about for ever."""

from worker_command import worker


async def _refuse(world):
    await world.admin.add_rule("upload.getFile", "error", code=400, text="FILE_ID_INVALID", count=0)


async def test_a_set_whose_headers_are_refused_is_given_up_with_the_reason_and_can_be_tried_again(
    world, run, sets
):
    world.settings["WORKER_FLEET__MAX_ATTEMPTS"] = "2"
    world.settings["WORKER_FLEET__RETRY_BASE_SECS"] = "60"
    await world.post_files(world.sources[0], world.make_volumes())
    await _refuse(world)
    await run()
    state, reason, _ = (await sets())["volumes-1.zip"]
    assert state == "collecting"
    assert "FILE_ID_INVALID" in reason
    (row,) = await world.fetch(
        "SELECT id, attempts, extract(epoch FROM not_before - fleet_now())::int AS wait FROM archive_sets"
    )
    assert row["attempts"] == 1
    assert 40 < row["wait"] <= 60

    await world.fetch("UPDATE archive_sets SET not_before = fleet_now()")
    await run()
    state, reason, _ = (await sets())["volumes-1.zip"]
    assert state == "failed"
    assert "FILE_ID_INVALID" in reason

    await world.admin.clear_rules()
    await run()
    assert (await sets())["volumes-1.zip"][0] == "failed", "it waits for a person"
    ended = await worker("sets", "retry", str(row["id"]), database_url=world.database_url)
    assert ended.code == 0, ended.err
    await run()
    await world.check_invariants()


async def test_a_set_that_is_refused_once_has_all_its_attempts_when_it_is_claimed(world, run, sets):
    world.settings["WORKER_FLEET__RETRY_BASE_SECS"] = "0.2"
    await world.post_files(world.sources[0], world.make_volumes())
    await world.admin.add_rule("upload.getFile", "error", code=400, text="FILE_ID_INVALID", count=1)
    await run()
    await world.drain("--account", "+10000000001")
    (row,) = await world.fetch("SELECT state, attempts FROM archive_sets")
    assert tuple(row) == ("indexed", 0)
