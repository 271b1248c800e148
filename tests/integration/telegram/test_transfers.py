"""A document goes up and comes down whole, whatever happens on the way."""

import asyncio

import pytest
from hang_guard import HANG_SECONDS
from transfer_bench import MIB

from worker.errors import LeaseLostError, PartMissingError, RetryableError
from worker.telegram.transfer import DOWN_BYTES, UP_BYTES

# A busy machine without a compiler takes minutes for 200 MiB both ways: both sides encrypt in Python.
pytestmark = pytest.mark.timeout(600)
LARGE = 200 * MIB
SMALL = 24 * MIB + 777


class Counter:
    """Counts what has moved, and does something when enough has."""

    def __init__(self, at=0, do=None):
        self.done, self._at, self._do = 0, at, do
        self.reached = asyncio.Event()

    def __call__(self, count):
        self.done += count
        if self._do and self.done >= self._at:
            self._do()
            self._do = None
        if self.done >= self._at:
            self.reached.set()


async def every(desk, method, interval, count, action, **options):
    for number in range(count):
        await desk.sandbox.admin.add_rule(method, action, nth=interval * (number + 1), **options)


async def test_200_mib_survive_a_disconnect_every_20_parts(desk):
    posted, digest = await desk.post(LARGE)
    await every(desk, "upload.getFile", 20, 10, "disconnect")
    assert await desk.download(posted) == digest
    await every(desk, "upload.saveBigFilePart", 20, 20, "disconnect")
    assert await desk.publish(desk.folder / "part-0") == digest
    hits = await desk.sandbox.admin.rule_hits()
    assert sum(hits.values()) >= 25


async def test_a_flood_wait_on_single_parts_delays_them_and_loses_nothing(desk):
    posted, digest = await desk.post(SMALL)
    for method in ("upload.getFile", "upload.saveBigFilePart"):
        await desk.sandbox.admin.add_rule(method, "error", nth=5, code=420, text="FLOOD_WAIT_1")
    assert await desk.download(posted) == digest
    assert await desk.publish(desk.folder / "part-0") == digest


async def test_200_mib_pass_with_waits_of_3_s_on_single_parts_of_which_premium_ones_narrow_the_depth(desk):
    posted, digest = await desk.post(LARGE)
    for method, nth in (("upload.getFile", 30), ("upload.saveBigFilePart", 60)):
        await desk.sandbox.admin.add_rule(method, "error", nth=nth, code=420, text="FLOOD_WAIT_3")
    await every(desk, "upload.getFile", 60, 2, "error", code=420, text="FLOOD_PREMIUM_WAIT_3")
    await every(desk, "upload.saveBigFilePart", 120, 2, "error", code=420, text="FLOOD_PREMIUM_WAIT_3")
    down, up = (desk.gateway.connections.depth(2, way) for way in ("down", "up"))
    assert await desk.download(posted) == digest
    assert await desk.publish(desk.folder / "part-0") == digest
    assert desk.permission.narrowed == 4
    assert down.limit < 32
    assert up.limit < 32


async def test_200_mib_come_down_although_their_reference_expires_in_the_middle(desk):
    posted, digest = await desk.post(LARGE)
    expire = []
    moved = Counter(
        LARGE // 2, lambda: expire.append(asyncio.create_task(desk.sandbox.admin.expire_references()))
    )
    assert await desk.download(posted, moved=moved) == digest
    await expire[0]
    refused = [call for call in await desk.sandbox.admin.calls("upload.getFile") if not call["ok"]]
    assert any("FILE_REFERENCE" in call["error"] for call in refused)


async def test_200_mib_pass_although_the_server_is_killed_and_restarted_in_the_middle(own_desk):
    desk = own_desk
    posted, digest = await desk.post(LARGE)
    restarts = []

    def restart():
        restarts.append(asyncio.create_task(asyncio.to_thread(desk.sandbox.restart)))

    assert await desk.download(posted, moved=Counter(LARGE // 2, restart)) == digest
    await restarts[0]
    uploaded = await desk.upload(desk.folder / "part-0", Counter(LARGE // 2, restart)).run()
    await restarts[1]
    await asyncio.wait_for(_until_sent(desk, uploaded), HANG_SECONDS)
    assert (await desk.sandbox.admin.messages(desk.channel_id))[-1]["sha256"] == digest


async def _until_sent(desk, uploaded):
    """The main connection finds its way back by itself."""
    while True:
        try:
            return await desk.send(uploaded)
        except RetryableError:
            await asyncio.sleep(0.2)


async def test_a_server_that_lastingly_fails_to_give_hashes_blocks_no_download(desk):
    posted, digest = await desk.post(SMALL)
    rule = await desk.sandbox.admin.add_rule(
        "upload.getFileHashes", "error", count=0, code=500, text="INTERNAL"
    )
    assert await desk.download(posted) == digest
    asked = (await desk.sandbox.admin.rule_hits())[rule]
    assert asked > 0
    assert await desk.download(posted, name="another") == digest
    assert (await desk.sandbox.admin.rule_hits())[rule] == asked, "the next one does not ask in vain again"


@pytest.mark.parametrize("action", ["short", "corrupt"])
async def test_a_spoilt_chunk_is_never_taken(desk, action):
    posted, digest = await desk.post(SMALL)
    rule = await desk.sandbox.admin.add_rule("upload.getFile", action, nth=7, count=3)
    assert await desk.download(posted) == digest
    assert (await desk.sandbox.admin.rule_hits())[rule] == 3


@pytest.mark.parametrize("action", ["short", "corrupt"])
async def test_a_chunk_that_stays_spoilt_ends_the_download_with_an_error(desk, action):
    posted, _ = await desk.post(SMALL)
    await desk.sandbox.admin.add_rule("upload.getFile", action, nth=3, count=0)
    with pytest.raises(RetryableError):
        await desk.download(posted)
    file, _ = desk.target(posted)
    assert len(file.missing()) > 0
    file.close()


async def test_a_file_at_another_data_centre_is_followed_there(desk):
    posted, digest = await desk.post(SMALL, dc_id=4)
    assert await desk.download(posted) == digest


async def test_a_lost_part_is_sent_again_before_the_message(desk):
    path = desk.folder / "file"
    path.write_bytes(bytes(SMALL))
    upload = desk.upload(path)
    uploaded = await upload.run()
    await desk.sandbox.admin.lose_parts(desk.phone, [3])
    with pytest.raises(PartMissingError, match="FILE_PART_3_MISSING"):
        await desk.send(uploaded)
    await upload.save_again(3)
    assert (await desk.send(uploaded)).document.size == SMALL


async def _cancel_once_moving(task, moved):
    await asyncio.wait_for(moved.reached.wait(), HANG_SECONDS)
    task.cancel()
    async with asyncio.timeout(HANG_SECONDS):
        with pytest.raises(asyncio.CancelledError):
            await task


async def test_a_cancelled_download_ends_before_it_is_complete_and_writes_no_more(desk):
    await desk.sandbox.admin.set_shape(mbps=8)
    posted, _ = await desk.post(SMALL)
    moved = Counter(2 * DOWN_BYTES)
    task = asyncio.create_task(desk.download(posted, moved=moved))
    await _cancel_once_moving(task, moved)
    assert moved.done < SMALL, "there was something left to be cancelled"
    path = desk.folder / "part-0"
    before = path.stat()
    # What was under way still arrives at the socket; it must not arrive in the file.
    assert await desk.gateway.me()
    assert path.stat().st_mtime_ns == before.st_mtime_ns


async def test_a_cancelled_upload_ends_before_it_is_complete_and_moves_no_more(desk):
    await desk.sandbox.admin.set_shape(mbps=8)
    path = desk.folder / "file"
    path.write_bytes(bytes(SMALL))
    moved = Counter(2 * UP_BYTES)
    task = asyncio.create_task(desk.upload(path, moved).run())
    await _cancel_once_moving(task, moved)
    acknowledged = moved.done
    assert acknowledged < SMALL, "there was something left to be cancelled"
    # Parts that had left before are still acknowledged; nobody may be told of them any more.
    assert await desk.gateway.me()
    assert moved.done == acknowledged


async def test_a_stalled_part_is_given_up_and_asked_for_again(own_desk):
    posted, digest = await own_desk.post(SMALL)
    await own_desk.sandbox.admin.add_rule("upload.getFile", "stall", nth=4)
    assert await own_desk.download(posted) == digest


async def test_a_transfer_whose_connections_are_cut_for_good_ends_at_once(desk):
    posted, _ = await desk.post(SMALL)
    await desk.sandbox.admin.set_shape(mbps=8)
    moved = Counter(DOWN_BYTES)
    task = asyncio.create_task(desk.download(posted, moved=moved))
    await asyncio.wait_for(moved.reached.wait(), HANG_SECONDS)
    desk.gateway.abort()
    with pytest.raises(LeaseLostError):
        await task


async def test_an_upload_counts_every_byte_once(desk):
    path = desk.folder / "file"
    path.write_bytes(bytes(3 * UP_BYTES + 5))
    moved = Counter()
    await desk.publish(path, moved)
    assert moved.done == 3 * UP_BYTES + 5
