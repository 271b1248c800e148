"""A split package that lacks one message is withdrawn whole: what stands of it is never doubled."""

import pytest
from recovering import recover
from world import PHONES, open_world

A, B = PHONES
ONE = ("--account", A)
MIB = 1024 * 1024


@pytest.fixture
async def world(tmp_path, database_url):
    """A package of three messages of which somebody has deleted the second one, to be published again."""
    async with open_world(tmp_path, database_url) as opened:
        opened.settings |= {
            "WORKER_TRANSFER__STANDARD_LIMIT_MIB": "1",
            "WORKER_FLEET__REPUBLISH_DELETED": "true",
        }
        await opened.post_archive(opened.sources[0], size=5 * MIB // 2)
        await opened.drain(*ONE)
        _, second, _ = await _standing(opened)
        await opened.admin.delete_messages(opened.destination, [second])
        yield opened


async def _standing(world) -> list[int]:
    messages = await world.admin.messages(world.destination)
    return [m["id"] for m in messages if m["document_id"] and not m["deleted"]]


async def test_what_stands_of_a_split_package_is_taken_back_with_it_and_never_doubled(world):
    found = await recover(world, *ONE)
    assert found["counts"]["package"]["withdrawn"] == 1
    assert found["counts"]["message"] == {"removed": 2}
    assert await _standing(world) == []
    await world.drain(*ONE)
    assert len(await _standing(world)) == 3
    await world.check_invariants()
    assert "message" not in (await recover(world, *ONE))["counts"], "nothing is left to do"


@pytest.mark.parametrize(
    "place", ["db.packages.withdraw:after:1", "telegram.channels.DeleteMessages:after:1"]
)
async def test_a_crash_on_the_way_leaves_nothing_to_be_doubled(world, place):
    assert await world.run("recover", *ONE, faults=f"kill={place}") == {"signal": 9}
    await world.until_buried()
    assert await world.run("run", "--once", *ONE) == {"exit": 0}
    await world.drain(*ONE)
    assert len(await _standing(world)) == 3
    await world.check_invariants()


async def test_its_content_waits_for_what_cannot_be_removed_and_says_so(world):
    await world.admin.add_rule(
        "channels.deleteMessages", "error", code=403, text="MESSAGE_DELETE_FORBIDDEN", count=0
    )
    before = await _standing(world)
    found = await recover(world, *ONE)
    assert found["counts"]["message"] == {"left": 2}
    assert await world.run("run", "--once", *ONE) == {"exit": 0}
    assert await _standing(world) == before
    (row,) = await world.fetch("SELECT state, reason, attempts FROM archive_sets")
    assert (row["state"], row["attempts"]) == ("ready", 0)
    assert "what is left of it in Library has to be taken back" in row["reason"]

    # A person has deleted it by hand.
    await world.admin.delete_messages(world.destination, before)
    await world.drain(*ONE)
    assert len(await _standing(world)) == 3
    await world.check_invariants()


async def test_what_no_upload_has_recorded_is_left_to_a_person(world):
    await world.fetch("DELETE FROM upload_parts")
    await world.fetch("DELETE FROM uploads")
    before = await _standing(world)
    found = await recover(world, *ONE)
    assert found["counts"]["message"] == {"left": 1}
    assert await _standing(world) == before


async def test_what_no_account_sees_whole_is_waited_for_until_a_person_says_otherwise(tmp_path, database_url):
    async with open_world(tmp_path, database_url) as world:
        await _leave_to_one_who_joined_later(world)
        before = await _standing(world)
        assert await world.run("run", "--once", "--account", B) == {"exit": 0}
        ((reason,),) = await world.fetch("SELECT reason FROM archive_sets")
        assert "no account at work sees all of that channel" in reason
        assert reason.endswith("run: worker recover --give-up 1")
        assert await _standing(world) == before

        found = await recover(world, "--give-up", "1", "--dry-run")
        assert found["counts"]["package"]["to be given up"] == 1
        # Nothing waits where nothing is published again.
        world.settings["WORKER_FLEET__REPUBLISH_DELETED"] = "false"
        assert await world.run("recover", "--give-up", "1") == {"exit": 2}
        world.settings["WORKER_FLEET__REPUBLISH_DELETED"] = "true"
        found = await recover(world, "--give-up", "1")
        assert found["counts"]["package"]["given up"] == 1
        await world.drain("--account", B)
        assert len(await _standing(world)) == len(before) + 3

        # Whoever sees all of it takes back what was left, and nothing else.
        await world.fetch("UPDATE accounts SET state = 'ready'")
        assert (await recover(world, *ONE))["counts"]["message"] == {"removed": 2}
        assert not set(before) & set(await _standing(world))
        await world.check_invariants()


async def test_what_an_account_sees_and_may_not_delete_is_not_doubled_for_a_persons_impatience(world):
    await world.admin.add_rule(
        "channels.deleteMessages", "error", code=403, text="MESSAGE_DELETE_FORBIDDEN", count=0
    )
    before = await _standing(world)
    await recover(world, *ONE)
    found = await recover(world, "--give-up", "1", *ONE)
    (package,) = [item["outcome"] for item in found["listed"] if item["kind"] == "package"]
    assert package == "waits: account 1 takes back what is left of it, in its next round"
    assert await world.run("run", "--once", *ONE) == {"exit": 0}
    assert await _standing(world) == before


async def _leave_to_one_who_joined_later(world) -> None:
    """A may not delete what stands of its package, and is disabled; B sees only what came after that."""
    world.settings |= {
        "WORKER_TRANSFER__STANDARD_LIMIT_MIB": "1",
        "WORKER_FLEET__REPUBLISH_DELETED": "true",
    }
    made = await world.admin.create_channel("Annex", broadcast=False, hidden_history=True, admins=[A])
    world.destination = made["channel_id"]
    await world.fetch("UPDATE channels SET is_destination = false")
    await world.fetch(
        "INSERT INTO channels (telegram_id, title, kind, is_destination) VALUES ($1, 'Annex', 'supergroup', true)",
        world.destination,
    )
    await world.post_archive(world.sources[0], size=5 * MIB // 2)
    await world.drain(*ONE)
    await world.admin.join(world.destination, B, admin=True)
    _, second, _ = await _standing(world)
    await world.admin.delete_messages(world.destination, [second])
    await world.admin.add_rule(
        "channels.deleteMessages", "error", code=403, text="MESSAGE_DELETE_FORBIDDEN", count=0
    )
    assert (await recover(world, *ONE))["counts"]["message"] == {"left": 2}
    await world.admin.clear_rules()
    await world.fetch("UPDATE accounts SET state = 'disabled' WHERE phone = $1", A)
