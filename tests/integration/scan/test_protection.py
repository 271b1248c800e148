"""What its owner has protected from copying: a whole channel, or a single message of one."""

from claims import let_go

from worker.domain.telegram import Document, Message
from worker.store.source_files import keep_files


async def test_p14_a_protected_source_is_skipped_until_its_owner_allows_it(world, run, sets):
    source = world.sources[0]
    await world.admin.set_noforwards(source, True)
    await world.post_archive(source)
    await run()
    assert (await sets())["archive-1.zip"] == ("skipped", "its source forbids copying", 1)
    await world.admin.set_noforwards(source, False)
    await run()
    await world.check_invariants()


async def test_p14_a_single_protected_message_is_skipped_and_its_neighbours_are_not(world, run, sets):
    source = world.sources[0]
    paths = [await world.post_archive() for _ in range(2)]
    protected, _ = await world.post_files(source, paths)
    await world.admin.protect_message(source, protected)
    await run()
    assert (await sets())["archive-1.zip"] == ("skipped", "its source forbids copying", 1)
    assert (await sets())["archive-2.zip"][0] == "indexed"
    await world.admin.protect_message(source, protected, protected=False)
    await run()
    assert {state for state, _, _ in (await sets()).values()} == {"indexed"}
    await world.check_invariants()


async def test_p14_a_published_set_stays_what_it_is_when_its_message_is_protected_later(world, run, sets):
    source = world.sources[0]
    (message,) = await world.post_files(source, [await world.post_archive()])
    await run()
    await world.admin.protect_message(source, message)
    await run()
    assert await sets() == {"archive-1.zip": ("indexed", None, 1)}


async def test_p14_protection_reaches_no_set_that_is_being_worked_on_but_is_not_forgotten(
    world, run, sets, database
):
    source = world.sources[0]
    await world.post_files(source, [await world.post_archive()])
    await run(faults="kill=db.sets.hashes:before:1", ends={"signal": 9})
    (file,) = await world.fetch("SELECT * FROM source_files")
    document = Document(file["document_id"], 0, b"", 2, file["size"], file["file_name"], file["mime_type"])
    message = Message(
        file["message_id"],
        file["posted_at"],
        file["caption"],
        is_ours=False,
        document=document,
        is_protected=True,
    )

    async def keep():
        async with database.transaction("test.protection") as connection:
            return await keep_files(connection, file["channel_id"], [message])

    assert (await keep()).held_up
    assert (await sets())["archive-1.zip"][0] == "claimed"
    (claimed,) = await world.fetch("SELECT claimed_by FROM archive_sets")
    await let_go(database, claimed["claimed_by"])
    assert not (await keep()).held_up
    assert await sets() == {"archive-1.zip": ("skipped", "its source forbids copying", 1)}
