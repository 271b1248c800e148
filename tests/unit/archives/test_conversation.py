"""What a parser says that was taken over: it is heard no more, or lies about its one archive."""

import asyncio
import json

import pytest

from worker.archives import wire
from worker.archives.conversation import converse
from worker.archives.reader import SetBytes
from worker.domain.archive_name import ArchiveFormat, Scheme
from worker.domain.listing import Limits

NOTHING = SetBytes(ArchiveFormat.ZIP, Scheme.SINGLE, (), ())


async def heard(*frames):
    reader = asyncio.StreamReader()
    reader.feed_data(b"".join(wire.pack(*frame) for frame in frames))
    reader.feed_eof()
    return await converse(reader, None, NOTHING, Limits())


def proof(*, missing=(), reason=""):
    return json.dumps([False, list(missing), reason, [], False]).encode()


@pytest.mark.parametrize(
    "payload",
    [b"[" * 10**6, b'[false,[1e999],"",[],false]', b"[false,[" + b"9" * 5000 + b'],"",[],false]', b"{}"],
    ids=["depths", "beyond all numbers", "a long number", "another thing"],
)
async def test_what_no_parser_says_ends_the_talk(payload):
    answer = await heard((wire.Frame.PROOF, payload))
    assert answer.proof is None
    assert answer.ending == -1


async def test_a_reason_is_one_that_can_be_kept():
    answer = await heard((wire.Frame.PROOF, proof(reason="a\0b\ud800" + "word " * 10**5)))
    assert answer.proof.reason.startswith("a\ufffdb\ufffdword")
    assert len(answer.proof.reason) <= 1000
    answer.proof.reason.encode()
