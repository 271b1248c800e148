"""The server's hashes are used where it gives them, and missed where it does not."""

import asyncio

import pytest

from worker.errors import ReferenceExpiredError, RefusedError, RetryableError
from worker.telegram.fingerprints import Fingerprints, HashService
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
    prints = Fingerprints(server.ask, range(100), unit=UNIT, service=HashService())
    assert await prints.of(0) == of_unit(0)
    await asyncio.sleep(0)
    assert len(server.asked) >= 20
    for number in range(1, 100):
        assert await prints.of(number * UNIT) == of_unit(number)
    assert sorted(server.asked) == list(range(100))
    await prints.close()


async def test_an_answer_for_many_units_saves_asking():
    server = Server(units=50)
    prints = Fingerprints(server.ask, range(0, 100, 50), unit=UNIT, service=HashService())
    for number in range(100):
        assert await prints.of(number * UNIT) == of_unit(number)
    assert sorted(server.asked) == [0, 50]
    await prints.close()


async def test_a_server_that_gives_none_is_not_asked_again():
    server = Server(*(RefusedError("upload.getFileHashes: 400 LOCATION_INVALID") for _ in range(100)))
    prints = Fingerprints(server.ask, range(100), unit=UNIT, service=HashService())
    assert await prints.of(0) == []
    asked = len(server.asked)
    assert await prints.of(50 * UNIT) == []
    assert len(server.asked) == asked
    await prints.close()


async def test_an_expired_reference_is_told_and_the_question_repeated():
    server = Server(ReferenceExpiredError("upload.getFileHashes: 400 FILE_REFERENCE_EXPIRED"))
    prints = Fingerprints(server.ask, range(1), unit=UNIT, service=HashService())
    with pytest.raises(ReferenceExpiredError):
        await prints.of(0)
    assert await prints.of(0) == of_unit(0)
    await prints.close()


async def test_a_server_that_keeps_failing_is_given_up_for_ten_minutes_and_no_download_fails_by_it():
    time = [0.0]
    service = HashService(lambda: time[0])
    failing = [RetryableError("upload.GetFileHashes: 500 INTERNAL") for _ in range(200)]
    server = Server(*failing)
    prints = Fingerprints(server.ask, range(100), unit=UNIT, service=service)
    for number in range(100):
        assert await prints.of(number * UNIT) == []
    await prints.close()
    asked = len(server.asked)
    assert asked < 100

    following = Fingerprints(server.ask, range(100), unit=UNIT, service=service)
    assert await following.of(0) == []
    assert len(server.asked) == asked
    time[0] = 600.0
    del server._answers[:]
    later = Fingerprints(server.ask, range(1), unit=UNIT, service=service)
    assert await later.of(0) == of_unit(0)
    await later.close()


async def test_one_unanswered_question_leaves_one_unit_uncompared():
    server = Server(RetryableError("upload.GetFileHashes: no answer"))
    prints = Fingerprints(server.ask, [], unit=UNIT, service=HashService())
    assert await prints.of(0) == []
    assert await prints.of(UNIT) == of_unit(1)
    await prints.close()
