"""The demo: everything that people post, dealt with once, and proven by a ledger that is not ours."""

import json

from fleet_rows import execute
from worker_command import installed_worker, worker

from worker.store.embedded import open_cluster

PUBLISHED, DUPLICATES = 14, 5


async def test_the_demo_accounts_for_every_archive_and_a_second_run_finds_nothing_to_do_and_says_why_it_waits(
    tmp_path,
):
    first = await installed_worker("demo", "--json", "--state", str(tmp_path / "demo"))
    assert first.code == 0, first.err
    done = json.loads(first.out)
    assert done["ledger"] == {
        "unique_contents": PUBLISHED,
        "message_sets": PUBLISHED,
        "doubled": 0,
        "lost": 0,
        "unexpected": 0,
    }
    assert (done["published"], done["duplicates"], done["failed"]) == (PUBLISHED, DUPLICATES, [])
    (waiting,) = done["waiting"]
    assert "Half a Book.part2.rar" in waiting["reason"]
    (skipped,) = done["skipped"]
    assert skipped["channel"] == "Closed Press"
    assert done["archives"] == done["new"] == PUBLISHED + DUPLICATES + 2
    assert done["split_parts"] > 1
    assert done["bytes_moved"] > 0
    assert done["bytes_avoided"] > 0

    # What a demo that was killed leaves behind.
    with open_cluster(tmp_path / "demo") as address:
        await execute(address, "UPDATE accounts SET lease_until = fleet_now() + interval '12 s' WHERE id = 1")
    second = await worker("demo", "--json", "--state", str(tmp_path / "demo"))
    again = json.loads(second.out)
    assert (second.code, again["new"], again["bytes_moved"]) == (0, 0, 0)
    assert again["ledger"] == done["ledger"]
    assert "Traceback" not in first.err + second.err
    assert "account 1: its last worker ended without a word; waiting " in second.err
    assert "waiting" not in first.err
