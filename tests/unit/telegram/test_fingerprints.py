"""The server's hashes are used where it gives them, and missed where it does not."""

import asyncio

import pytest

from worker.errors import ReferenceExpiredError, RefusedError
from worker.telegram.fingerprints import Fingerprints
from worker.telegram.part_calls import RangeHash

UNIT = 1000


def of_unit(number):
    return [RangeHash(number * UNIT + at, 500, bytes(32)) for at in (0, 500)]


class Server:
    def __init__(self, *answers, units=1):
        self.asked, self._answers, self._units = [], list(answers), units

    async def ask(self, offset):
        self.asked.append(offset // UNIT)
        if self._answers and isinstance(self._answers[0], Exception):
            raise self._answers.pop(0)
        first = offset // UNIT
        return [each for number in range(first, first + self._units) for each in of_unit(number)]


async def test_every_unit_is_asked_for_once_and_ahead():
    server = Server()
    prints = Fingerprints(server.ask, range(100), unit=UNIT)
    assert await prints.of(0) == of_unit(0)
    await asyncio.sleep(0)
    assert len(server.asked) >= 20
    for number in range(1, 100):
        assert await prints.of(number * UNIT) == of_unit(number)
    assert sorted(server.asked) == list(range(100))
    await prints.close()


async def test_an_answer_for_many_units_saves_asking():
    server = Server(units=50)
    prints = Fingerprints(server.ask, range(0, 100, 50), unit=UNIT)
    for number in range(100):
        assert await prints.of(number * UNIT) == of_unit(number)
    assert sorted(server.asked) == [0, 50]
    await prints.close()


async def test_a_server_that_gives_none_is_not_asked_again():
    server = Server(*(RefusedError("upload.getFileHashes: 400 LOCATION_INVALID") for _ in range(100)))
    prints = Fingerprints(server.ask, range(100), unit=UNIT)
    assert await prints.of(0) == []
    asked = len(server.asked)
    assert await prints.of(50 * UNIT) == []
    assert len(server.asked) == asked
    await prints.close()


async def test_an_expired_reference_is_told_and_the_question_repeated():
    server = Server(ReferenceExpiredError("upload.getFileHashes: 400 FILE_REFERENCE_EXPIRED"))
    prints = Fingerprints(server.ask, range(1), unit=UNIT)
    with pytest.raises(ReferenceExpiredError):
        await prints.of(0)
    assert await prints.of(0) == of_unit(0)
    await prints.close()
