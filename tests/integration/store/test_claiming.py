"""Which set an account takes next, and what it leaves to others."""

import asyncio
import uuid

import asyncpg
import pytest
from claims import FakeDisk, claim_next, let_go
from hang_guard import HANG_SECONDS

from worker.domain.forming import PROTECTED, UNCHECKED
from worker.domain.split_plan import MIB
from worker.errors import RetryableError
from worker.store import disk as reservations
from worker.store import sets, workers
from worker.store.claiming import Turn, others_prepare, reserve_for, seconds_to_next
from worker.store.database import Database

# How long a busy machine takes for a test ends no wait and no claim.
pytestmark = pytest.mark.usefixtures("standing_fleet_time")
ADA, GRACE, ALAN = 1, 2, 3
SMALL, TWO_GIB, FIVE_GIB = 10, 2048 * MIB, 5120 * MIB
_WORLD = """
    INSERT INTO accounts (phone, state, is_premium, lease_until)
    VALUES ('+1', 'ready', false, fleet_now() + interval '1 minute'),
           ('+2', 'ready', true, fleet_now() + interval '1 minute'),
           ('+3', 'ready', false, fleet_now() + interval '1 minute');
    INSERT INTO channels (telegram_id, title, kind, is_source) SELECT n, 'source ' || n, 'channel', true
    FROM generate_series(1, 3) n;
    INSERT INTO channels (telegram_id, title, kind, is_destination) VALUES (9, 'library', 'channel', true);
    INSERT INTO memberships (account_id, channel_id, can_post, visible_from)
    SELECT a.id, c.id, c.is_destination, 0 FROM accounts a, channels c;
"""
_SET = """
    WITH made AS (
        INSERT INTO archive_sets (channel_id, name, format, state, part_count, total_size, lead_document_id, posted_at)
        VALUES ($1, $2, 'zip', 'ready', 1, $3, $4, now()) RETURNING id
    )
    INSERT INTO source_files (channel_id, message_id, document_id, file_name, size, posted_at, set_id, part_number)
    SELECT $1, $4, $4, $2, $3, now(), id, 0 FROM made RETURNING set_id
"""
_SLOWED = """
    INSERT INTO api_activity (account_id, method, success, error_code, flood_wait_seconds)
    VALUES ($1, 'upload.getFile', false, 'FLOOD_PREMIUM_WAIT_3', 3)
"""


@pytest.fixture
async def raw(database_url):
    connection = await asyncpg.connect(database_url)
    await connection.execute(_WORLD)
    yield connection
    await connection.close()


@pytest.fixture
async def worker(database, raw):
    worker_id = uuid.uuid4()
    await workers.register(database, worker_id, host="h", pid=1, version="0", address=None)
    return worker_id


@pytest.fixture
def add(raw):
    numbers = iter(range(1, 1000))

    async def add_set(channel: int = 1, size: int = SMALL) -> int:
        number = next(numbers)
        return await raw.fetchval(_SET, channel, f"{number}.zip", size, number)

    return add_set


async def _reason(raw, set_id: int) -> str:
    return await raw.fetchval("SELECT reason FROM archive_sets WHERE id = $1", set_id)


@pytest.mark.parametrize("what", ["channels SET is_protected = true", "source_files SET is_protected = true"])
async def test_p14_what_was_protected_while_somebody_worked_on_it_is_skipped_with_that_reason(
    database, raw, worker, add, what
):
    protected, free = await add(1), await add(2)
    await raw.execute(f"UPDATE {what} WHERE {'id' if what.startswith('channels') else 'channel_id'} = 1")
    assert (await claim_next(database, ADA, worker)).set_id == free
    assert await claim_next(database, ADA, worker) is None
    state = await raw.fetchval("SELECT state FROM archive_sets WHERE id = $1", protected)
    assert (state, await _reason(raw, protected)) == ("skipped", PROTECTED)


async def test_p14_what_is_protected_is_taken_where_its_owner_allows_it(database, raw, worker, add):
    await add()
    await raw.execute("UPDATE channels SET is_protected = true, allow_protected = true")
    assert await claim_next(database, ADA, worker) is not None


async def test_channels_take_turns_however_many_sets_one_of_them_has(database, worker, add):
    for _ in range(4):
        await add(1)
    await add(2)
    await add(3)
    served, after = [], 0
    while claim := await claim_next(database, ADA, worker, turn=Turn(after)):
        served.append(claim.channel_id)
        after = claim.channel_id
    assert served == [1, 2, 3, 1, 1, 1]


async def test_only_channels_that_the_account_reads_and_that_do_not_rest(database, raw, worker, add):
    await add(1)
    await add(2)
    wanted = await add(3)
    await raw.execute("UPDATE memberships SET can_read = false WHERE account_id = 1 AND channel_id = 1")
    claim = await claim_next(database, ADA, worker, turn=Turn(resting=[2]))
    assert claim.set_id == wanted
    assert await claim_next(database, ADA, worker, turn=Turn(resting=[2])) is None


async def test_a_file_that_only_premium_sends_whole_is_left_to_it(database, worker, add):
    large = await add(size=TWO_GIB)
    small = await add()
    assert (await claim_next(database, ADA, worker)).set_id == small
    assert await claim_next(database, ADA, worker) is None
    assert (await claim_next(database, GRACE, worker, premium=True)).set_id == large


@pytest.mark.parametrize(
    "why_not",
    [
        "UPDATE accounts SET state = 'needs_login' WHERE id = 2",
        "UPDATE accounts SET is_premium = false WHERE id = 2",
        "UPDATE memberships SET can_read = false WHERE account_id = 2 AND channel_id = 1",
        "UPDATE memberships SET can_post = false WHERE account_id = 2",
        "UPDATE accounts SET lease_until = NULL, updated_at = fleet_now() - interval '11 minutes' WHERE id = 2",
        _SLOWED.replace("$1", "2"),
    ],
    ids=["needs login", "no Premium", "cannot read it", "may not post", "not at work", "slowed down"],
)
async def test_without_a_premium_account_that_can_take_it_a_large_file_is_split(
    database, raw, worker, add, why_not
):
    large = await add(size=TWO_GIB)
    await raw.execute(why_not)
    assert (await claim_next(database, ADA, worker)).set_id == large


async def test_a_file_is_no_longer_left_to_a_premium_account_whose_disk_has_no_room_for_it(
    database, raw, worker, add
):
    large = await add(size=TWO_GIB)
    too_small = FakeDisk(free=10**9, total=10**9)
    assert await claim_next(database, GRACE, worker, premium=True, disk=too_small) is None
    await raw.execute("UPDATE archive_sets SET not_before = fleet_now()")
    assert (await claim_next(database, ADA, worker)).set_id == large


@pytest.mark.parametrize("slowed", [False, True], ids=["to Premium", "to a faster one"])
async def test_a_set_is_left_to_another_account_for_an_hour_at_most(database, raw, worker, add, slowed):
    large = await add(size=TWO_GIB)
    if slowed:
        await raw.execute(_SLOWED, ADA)
    await raw.execute("UPDATE archive_sets SET not_before = fleet_now() - interval '59 minutes'")
    assert await claim_next(database, ADA, worker, premium=slowed) is None
    await raw.execute("UPDATE archive_sets SET not_before = fleet_now() - interval '61 minutes'")
    assert (await claim_next(database, ADA, worker, premium=slowed)).set_id == large


async def test_a_paused_premium_account_is_not_waited_for(database, worker, add):
    large = await add(size=TWO_GIB)
    assert await claim_next(database, ADA, worker) is None
    assert (await claim_next(database, ADA, worker, turn=Turn(paused_accounts=[GRACE]))).set_id == large


async def test_a_file_that_even_premium_has_to_split_goes_to_anybody(database, worker, add):
    huge = await add(size=FIVE_GIB)
    assert (await claim_next(database, ADA, worker)).set_id == huge


async def test_an_account_that_telegram_slows_down_leaves_large_work_to_others(database, raw, worker, add):
    large = await add(size=300 * MIB)
    await raw.execute(_SLOWED, ADA)
    assert await claim_next(database, ADA, worker) is None
    assert (await claim_next(database, ALAN, worker)).set_id == large
    small = await add()
    assert (await claim_next(database, ADA, worker)).set_id == small


async def test_a_slowed_account_goes_on_when_it_is_the_only_one(database, raw, worker, add):
    large = await add(size=300 * MIB)
    await raw.execute(_SLOWED, ADA)
    await raw.execute("UPDATE memberships SET can_read = false WHERE account_id > 1")
    assert (await claim_next(database, ADA, worker)).set_id == large


async def test_a_set_that_does_not_fit_waits_with_that_reason_and_others_go_on(
    database, raw, worker, add, advance_fleet_time
):
    tight = FakeDisk(free=1200 * MIB)
    large, small = await add(size=3174 * MIB, channel=1), await add(channel=2)
    claim = await claim_next(database, ADA, worker, disk=tight, turn=Turn(paused_accounts=[GRACE]))
    assert claim.set_id == small
    assert await _reason(raw, large) == "disk: 3.1 GiB needed, 1.2 free — free some space"
    tight.free = 10**12
    await advance_fleet_time(61)
    assert (
        await claim_next(database, ADA, worker, disk=tight, turn=Turn(paused_accounts=[GRACE]))
    ).set_id == large


async def test_a_process_frozen_in_the_middle_of_a_claim_holds_up_others_for_seconds_and_promises_nothing(
    database, database_url, raw, worker, add
):
    first = await add(size=600)
    disk, frozen = FakeDisk(free=1000, total=1000), Database(database_url)
    claim = None
    with pytest.raises(RetryableError):
        async with frozen.transaction("sets.claim") as connection:
            await reservations.lock_volume(connection, disk.name)
            await reservations.reserve(connection, disk.name, set_id=first, fence=1, size=600)
            # Stopped here, it says nothing more until the others have gone on.
            # Less than the minute that a frozen process would hold the row if nothing ended it.
            async with asyncio.timeout(HANG_SECONDS / 3):
                claim = await claim_next(database, ADA, worker, disk=disk)
            await reservations.reserve(connection, disk.name, set_id=first, fence=1, size=600)
    await frozen.close()
    assert claim is not None, "the other one waited in vain"
    assert claim.set_id == first
    rows = await raw.fetch("SELECT set_id, fence, bytes FROM disk_reservations")
    assert [tuple(row) for row in rows] == [(first, claim.fence, 600)]


@pytest.mark.parametrize("size", [600, 1100], ids=["it is full", "it is too small"])
async def test_a_set_that_one_hosts_disk_has_no_room_for_does_not_wait_for_another_host(
    database, raw, worker, add, size
):
    wanted = await add(size=size)
    full = FakeDisk(free=100, total=1000)
    assert await claim_next(database, ADA, worker, disk=full) is None
    assert await claim_next(database, ADA, worker, disk=full) is None, "it was looked at just now"
    elsewhere = FakeDisk(free=2000, total=2000, name="another volume")
    claim = await claim_next(database, GRACE, worker, disk=elsewhere)
    assert claim.set_id == wanted
    await sets.hand_back(database, claim, reason="busy", wait_seconds=40)
    assert await claim_next(database, GRACE, worker, disk=elsewhere) is None, "this holds for every host"


async def test_a_set_larger_than_the_disk_says_so(database, raw, worker, add):
    large = await add(size=3174 * MIB)
    small_disk = FakeDisk(free=1200 * MIB, total=2048 * MIB)
    assert (
        await claim_next(database, ADA, worker, disk=small_disk, turn=Turn(paused_accounts=[GRACE])) is None
    )
    assert await _reason(raw, large) == (
        "disk: 3.1 GiB needed, but all of it holds 2.0 GiB — put data_dir on a larger one"
    )


async def test_space_is_promised_once_until_it_is_written(database, worker, add):
    await add(size=600)
    await add(size=600)
    disk = FakeDisk(free=1000, total=1000)
    first = await claim_next(database, ADA, worker, disk=disk)
    assert await claim_next(database, GRACE, worker, disk=disk) is None

    disk.free -= 600
    await sets.save_hashes(database, first, bytes(32), [bytes(32)])
    third = await add(size=300)
    assert await claim_next(database, GRACE, worker, disk=disk) is None, "another set asks for that space"
    await sets.hand_back(database, first, reason="later", wait_seconds=3600)
    disk.free += 600
    await reservations.release(database, first)
    second = await claim_next(database, GRACE, worker, disk=disk)
    assert second.total_size == 600
    assert (await claim_next(database, GRACE, worker, disk=disk)) is None
    assert third is not None


async def test_the_claim_of_a_dead_worker_promises_nothing(database, raw, worker, add):
    await add(size=600)
    disk = FakeDisk(free=1000, total=1000)
    await claim_next(database, ADA, worker, disk=disk)
    await workers.stopped(database, worker)
    await sets.release_dead_claims(database, uuid.uuid4())
    assert await claim_next(database, GRACE, worker, disk=disk) is not None
    await let_go(database, GRACE)
    assert await reservations.sweep_reservations(database) == 1
    assert await raw.fetchval("SELECT count(*) FROM disk_reservations") == 0


async def test_kept_files_go_before_a_set_is_turned_away(database, worker, add):
    wanted = await add(size=600)
    disk = FakeDisk(free=400, total=1000, kept=300)
    assert (await claim_next(database, ADA, worker, disk=disk)).set_id == wanted


async def test_what_was_begun_reserves_its_space_too(database, worker, add):
    set_id = await add(size=600)
    claim = await sets.claim_set(database, ADA, worker, set_id)
    assert (await reserve_for(database, claim, FakeDisk(free=599, total=1000), 0)).seconds > 0
    assert await reserve_for(database, claim, FakeDisk(free=600, total=1000), 0) is None


async def test_the_next_moment_at_which_a_set_may_be_claimed_is_known(database, raw, worker, add):
    assert await seconds_to_next(database, ADA) is None
    await add()
    assert await seconds_to_next(database, ADA) is None, "it may be claimed already"
    claim = await claim_next(database, ADA, worker)
    await sets.hand_back(database, claim, reason="busy", wait_seconds=40)
    assert await seconds_to_next(database, ADA) == 40


async def test_whether_others_are_about_to_find_something_is_known(database, raw, add):
    assert not await others_prepare(database, ADA, [])
    await raw.execute("""
        INSERT INTO scan_cursors (channel_id, held_by, held_until)
        VALUES (1, 2, fleet_now() + interval '1 minute')
    """)
    assert await others_prepare(database, ADA, [])
    assert not await others_prepare(database, GRACE, []), "it is the one who reads"
    assert not await others_prepare(database, ADA, [1]), "the channel rests"
    await raw.execute("UPDATE scan_cursors SET held_until = fleet_now() - interval '1 second'")
    assert not await others_prepare(database, ADA, []), "nobody waits for the dead"
    await raw.execute("UPDATE scan_cursors SET held_until = fleet_now() + interval '1 day'")
    assert not await others_prepare(database, ADA, []), "nor for a clock that has stepped back"


@pytest.mark.parametrize(
    ("reason", "seconds", "expected"),
    [(UNCHECKED, 60, True), (UNCHECKED, -1, False), (UNCHECKED, 86_400, False), ("FLOOD", 60, False)],
)
async def test_a_set_that_is_being_proven_is_about_to_be_ready(database, raw, add, reason, seconds, expected):
    await add(2)
    await raw.execute(
        "UPDATE archive_sets SET state = 'collecting', to_prove = true, reason = $1,"
        " not_before = fleet_now() + $2 * interval '1 second'",
        reason,
        seconds,
    )
    assert await others_prepare(database, ADA, []) is expected


@pytest.mark.parametrize(("visible_from", "taken"), [(0, True), (1, True), (2, False), (None, False)])
async def test_an_account_takes_only_sets_whose_messages_it_is_known_to_see(
    database, raw, worker, add, visible_from, taken
):
    await add(1)
    await raw.execute("UPDATE memberships SET visible_from = $1 WHERE channel_id = 1", visible_from)
    claim = await claim_next(database, ADA, worker)
    assert (claim is not None) is taken
