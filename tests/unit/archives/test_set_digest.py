import hashlib

from worker.archives.digest import PIECE, digest_set
from worker.archives.reader import JoinedReader


class BytesReader:
    def __init__(self, data):
        self._data = data
        self.size = len(data)

    async def read_at(self, offset, length):
        return self._data[offset : offset + length]


async def test_the_content_hash_is_over_all_parts_in_order_and_each_part_has_its_own():
    bodies = [bytes([n]) * size for n, size in enumerate([PIECE * 2 + 5, 0, 17, PIECE])]
    digest = await digest_set([BytesReader(body) for body in bodies])
    assert digest.content == hashlib.sha256(b"".join(bodies)).digest()
    assert digest.parts == tuple(hashlib.sha256(body).digest() for body in bodies)
    assert digest.size == sum(map(len, bodies))


async def test_nothing_has_the_digest_of_nothing():
    assert (await digest_set([])).content == hashlib.sha256().digest()


async def test_a_joined_reader_reads_across_its_parts():
    whole = bytes(range(100))
    joined = JoinedReader(
        [BytesReader(whole[:10]), BytesReader(b""), BytesReader(whole[10:37]), BytesReader(whole[37:])]
    )
    assert joined.size == 100
    for offset in range(0, 101, 7):
        for length in (0, 1, 9, 30, 200):
            assert await joined.read_at(offset, length) == whole[offset : offset + length]
