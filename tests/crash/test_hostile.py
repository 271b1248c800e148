"""What strangers post, and what the network does, never takes an account out of service."""

import asyncio
import struct
import zipfile

from world import PHONES, open_world

ONE = ("--account", PHONES[0])


def _lying_zip(path) -> None:
    """A zip whose only member claims 2^64 - 2 bytes, more than a database's integer holds."""
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("a.txt", "hello")
    data = path.read_bytes()
    directory, end = data.index(b"PK\x01\x02"), data.index(b"PK\x05\x06")
    entry = bytearray(data[directory:end])
    extra = struct.pack("<HHQ", 1, 8, 2**64 - 2)
    struct.pack_into("<I", entry, 24, 0xFFFFFFFF)
    struct.pack_into("<H", entry, 30, len(extra))
    entry += extra
    tail = bytearray(data[end:])
    struct.pack_into("<I", tail, 12, len(entry))
    path.write_bytes(data[:directory] + entry + tail)


async def test_hostile_names_and_sizes_are_archived_like_any_other(tmp_path, database_url):
    async with open_world(tmp_path, database_url) as world:
        lying = tmp_path / "lying.zip"
        _lying_zip(lying)
        await world.admin.post_document(world.sources[0], lying, "lying.zip")
        await world.admin.post_document(
            world.sources[0], await world.post_archive(), "evil\0name.zip", caption="a\0b"
        )
        await world.post_archive(world.sources[1])
        await world.drain()
        await world.check_invariants()


async def test_a_session_that_telegram_ended_asks_for_a_login_and_the_other_account_goes_on(
    tmp_path, database_url
):
    async with open_world(tmp_path, database_url) as world:
        await world.admin.revoke_sessions(PHONES[0])
        for source in world.sources:
            await world.post_archive(source)
        ended = await world.run("run", "--once")
        assert ended == {"exit": 1}
        states = {
            row["phone"]: row["state"] for row in await world.fetch("SELECT phone, state FROM accounts")
        }
        assert states == {PHONES[0]: "needs_login", PHONES[1]: "ready"}
        await world.drain()
        await world.check_invariants()


async def test_accounts_that_see_the_same_channels_in_other_orders_do_not_deadlock(database):
    from worker.domain.telegram import ChannelInfo, ChannelRef  # noqa: PLC0415
    from worker.store import accounts, channels  # noqa: PLC0415

    ids = [(await accounts.add_account(database, phone)).id for phone in PHONES]
    infos = [ChannelInfo(ChannelRef(n, 1), str(n), None, "channel", False, False) for n in range(1, 40)]
    for _ in range(5):
        await asyncio.gather(
            channels.record_seen(database, ids[0], infos), channels.record_seen(database, ids[1], infos[::-1])
        )
    async with database.reading() as connection:
        assert (await connection.exec_driver_sql("SELECT count(*) FROM memberships")).scalar_one() == 78
