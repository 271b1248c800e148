"""Where channels stand is asked of many at once: one of them hides no other."""

from types import SimpleNamespace

import pytest
from pyrogram import raw

from worker.domain.telegram import ChannelHead, ChannelRef
from worker.errors import NoAccessError, RefusedError
from worker.telegram.dialogs import read_heads

CHANNELS = [ChannelRef(number, 7) for number in range(1, 131)]


class Picky:
    """An account whose server refuses every question that names one channel."""

    def __init__(self, refused, error):
        self._refused = refused
        self._error = error
        self.asked = 0

    async def read(self, query):
        self.asked += 1
        named = [item.peer.channel_id for item in query.peers]
        if self._refused in named:
            raise self._error
        peers = [raw.types.PeerChannel(channel_id=number) for number in named]
        return SimpleNamespace(dialogs=[SimpleNamespace(peer=peer, top_message=9, pts=4) for peer in peers])


@pytest.mark.parametrize(
    ("error", "expected"),
    [(NoAccessError("CHANNEL_PRIVATE"), {}), (RefusedError("PEER_ID_INVALID"), {40: None})],
)
async def test_a_channel_that_is_refused_hides_no_other_and_is_not_taken_for_left(error, expected):
    picky = Picky(40, error)
    others = {ref.telegram_id: ChannelHead(9, 4) for ref in CHANNELS if ref.telegram_id != 40}
    assert await read_heads(picky, CHANNELS) == {**others, **expected}
    assert picky.asked < 20
