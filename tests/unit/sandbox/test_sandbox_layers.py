from io import BytesIO

from pyrogram import raw
from pyrogram.raw.core import TLObject

from worker.sandbox.layers import older
from worker.sandbox.layers.schema import parse

SCHEMA = "types.Thing#0000abcd flags:# loud:flags.1?true id:long name:flags.0?string parts:Vector<int>"


def test_a_constructor_reads_what_it_writes():
    (thing,) = parse(f"// a comment\n{SCHEMA}\n")
    for values in (
        {"loud": True, "id": 5, "name": "a", "parts": [1, 2]},
        {"id": 5, "parts": []},
        {"id": 5, "name": "", "parts": [3]},
    ):
        data = BytesIO(thing.write(values))
        assert int.from_bytes(data.read(4), "little") == 0xABCD
        assert thing.read(data) == values


def test_every_old_constructor_has_a_successor_in_the_present_layer():
    for number, reader in older.readers().items():
        assert issubclass(reader._class, TLObject)
        assert number not in raw.all.objects or raw.all.objects[number] is not reader._class


def test_an_old_client_gets_old_constructors_inside_unchanged_ones():
    settings = raw.types.PeerNotifySettings()
    channel = raw.types.InputChannel(channel_id=1, access_hash=2)
    answer = raw.types.messages.InvitedUsers(
        updates=raw.types.Updates(updates=[], users=[], chats=[], date=1, seq=0), missing_invitees=[]
    )
    assert older.translate(settings).write()[:4] == (0xA83B0426).to_bytes(4, "little")
    assert older.translate(channel).write() == channel.write()
    assert older.translate(answer).write() == answer.updates.write()


def test_an_old_reply_becomes_a_reply_of_the_present_layer():
    readers = older.readers()
    number = next(n for n, r in readers.items() if r._class is raw.functions.messages.SendMessage)
    old = next(c for c in older._CONSTRUCTORS if c.number == number)
    peer = raw.types.InputPeerSelf()
    data = BytesIO(old.write({"peer": peer, "message": "hi", "random_id": 3, "reply_to_msg_id": 9}))
    data.read(4)
    query = readers[number].read(data)
    assert query.reply_to.reply_to_msg_id == 9
    assert (query.message, query.random_id) == ("hi", 3)
