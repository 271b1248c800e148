"""What an open upload may be finished with, and by whom."""

import uuid

import asyncpg
import pytest
from claims import let_go

from worker.errors import UserError
from worker.store import given_up, open_intents, reach, sets, uploads, workers
from worker.store.roster import finished_since, this_moment
from worker.store.set_listing import skip_set
from worker.store.uploads import IntentPart

HASH = bytes(range(32))
A, B = 1, 2
# Both sets hold the same bytes: A reads the first, B the second.
_WORLD = """
    INSERT INTO accounts (phone, state) VALUES ('+1', 'banned'), ('+2', 'ready');
    INSERT INTO channels (telegram_id, title, kind, is_source)
    VALUES (1, 'first', 'channel', true), (2, 'second', 'channel', true);
    INSERT INTO channels (telegram_id, title, kind, is_destination) VALUES (3, 'library', 'channel', true);
    INSERT INTO memberships (account_id, channel_id, can_post, visible_from)
    VALUES (1, 1, false, 0), (2, 2, false, 0), (1, 3, true, 0), (2, 3, true, 0);
    INSERT INTO archive_sets (channel_id, name, format, state, part_count, total_size, lead_document_id, posted_at,
                              content_hash)
    SELECT c, c || '.zip', 'zip', 'ready', 1, 10, c, now(), decode($hash$, 'hex') FROM generate_series(1, 2) c;
    INSERT INTO source_files (channel_id, message_id, document_id, file_name, size, posted_at, set_id, part_number)
    SELECT s.channel_id, 7, s.id, s.name, 10, now(), s.id, 0 FROM archive_sets s;
"""


@pytest.fixture
async def raw(database_url):
    connection = await asyncpg.connect(database_url)
    await connection.execute(_WORLD.replace("$hash$", f"'{HASH.hex()}'"))
    yield connection
    await connection.close()


@pytest.fixture
async def me(database, raw):
    made = uuid.uuid4()
    await workers.register(database, made, host="h", pid=1, version="0", address=None)
    return made


@pytest.fixture
async def begun(database, raw, me):
    """The upload that A has begun with the first set, of which nobody works on anything."""
    claim = await sets.claim_set(database, A, me, 1)
    part = IntentPart(0, "1.zip", 0, 10, 4711, "caption")
    intent = await uploads.create_intent(
        database, claim, account_id=A, destination_id=3, floor_id=0, content_hash=HASH, parts=[part]
    )
    await let_go(database, A)
    return intent


@pytest.mark.parametrize(
    "protected",
    [
        "UPDATE channels SET is_protected = true WHERE id = 2",
        "UPDATE source_files SET is_protected = true WHERE set_id = 2",
    ],
    ids=["its channel", "its message"],
)
async def test_a_protected_set_never_serves_as_a_copy_unless_that_is_allowed(database, raw, begun, protected):
    assert [copy.set_id for copy in await reach.copies_of(database, begun)] == [2]
    assert len(await open_intents.stranded_for(database, B)) == 1
    await raw.execute(protected)
    assert await reach.copies_of(database, begun) == []
    assert await open_intents.stranded_for(database, B) == []
    await raw.execute("UPDATE channels SET allow_protected = true WHERE id = 2")
    assert (
        len(await reach.copies_of(database, begun)) == len(await open_intents.stranded_for(database, B)) == 1
    )


async def test_what_a_person_has_given_up_is_anybodys_to_end_without_its_bytes(database, raw, begun):
    await raw.execute("UPDATE archive_sets SET state = 'failed', reason = 'gone' WHERE id = 2")
    assert await open_intents.stranded_for(database, B) == []
    with pytest.raises(UserError, match="worker recover --give-up 1"):
        await skip_set(database, 1, "not wanted")
    await given_up.decide_to_give_up(database, 1, "given up by ada@nas")
    (found,) = await open_intents.stranded_for(database, B)
    assert (found.upload_id, found.set_id, found.account_id) == (begun.upload_id, 1, A)
    # An account that may not delete there leaves it to one that may.
    await raw.execute("INSERT INTO accounts (phone, state) VALUES ('+3', 'ready')")
    await raw.execute("INSERT INTO memberships (account_id, channel_id, visible_from) VALUES (3, 3, 0)")
    assert await open_intents.stranded_for(database, 3) == []
    await raw.execute("UPDATE memberships SET can_post = false WHERE account_id = 2")
    assert len(await open_intents.stranded_for(database, 3)) == 1


async def test_a_set_with_nothing_begun_cannot_be_given_up(database, raw):
    with pytest.raises(UserError, match="to leave a set out: worker sets skip 2"):
        await given_up.decide_to_give_up(database, 2, "given up by ada@nas")


async def test_a_command_that_ends_during_a_run_has_finished_no_accounts_work(database, raw, me):
    began = await this_moment(database)
    errand = await workers.start_run(database, me, B, is_errand=True)
    await workers.end_run(database, errand, "finished")
    assert await finished_since(database, began) == set()
    run = await workers.start_run(database, me, B)
    await workers.end_run(database, run, "finished")
    assert await finished_since(database, began) == {B}
