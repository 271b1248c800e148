"""Whoever reads page by page comes to an end, whatever a server answers."""

from types import SimpleNamespace

import pytest
from pyrogram import raw

from worker.domain.telegram import ChannelRef
from worker.errors import RetryableError
from worker.telegram.gateway import Gateway
from worker.telegram.reading import files_between, topic_page_after

CHANNEL = ChannelRef(5, 7)


def posted(*ids):
    peer = raw.types.PeerChannel(channel_id=CHANNEL.telegram_id)
    messages = [raw.types.Message(id=number, peer_id=peer, date=1, message="") for number in ids]
    return SimpleNamespace(messages=messages)


class Stuck(Gateway):
    """An account whose server gives one answer to every question."""

    def __init__(self, *ids):
        self._answer = posted(*ids)

    async def _call(self, query, channel=None):
        return self._answer


def ids_of(page):
    return [message.message_id for message in page]


@pytest.mark.parametrize(
    "page_after", [Gateway.page_after, lambda gateway, *rest: topic_page_after(gateway, rest[0], 3, rest[1])]
)
async def test_a_page_that_never_goes_on_is_neither_asked_for_again_and_again_nor_taken_for_the_end(
    page_after,
):
    stuck = Stuck(12, 11, 10)
    assert ids_of(await page_after(stuck, CHANNEL, 10)) == [11, 12]
    with pytest.raises(RetryableError, match="above 12 were asked for, and others came"):
        await page_after(stuck, CHANNEL, 12)
    assert await page_after(Stuck(), CHANNEL, 12) == []


async def test_a_search_that_gives_the_same_files_again_has_come_to_its_end():
    stuck, found, below = Stuck(12, 11, 10), [], 0
    while page := await files_between(stuck, CHANNEL, 0, 10, below):
        found += ids_of(page)
        below = min(ids_of(page))
    assert found == [12, 11]
