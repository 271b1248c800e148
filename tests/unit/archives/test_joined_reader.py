from worker.archives.reader import BytesReader, JoinedReader


async def test_a_joined_reader_reads_across_its_parts():
    whole = bytes(range(100))
    joined = JoinedReader(
        [BytesReader(whole[:10]), BytesReader(b""), BytesReader(whole[10:37]), BytesReader(whole[37:])]
    )
    assert joined.size == 100
    for offset in range(0, 101, 7):
        for length in (0, 1, 9, 30, 200):
            assert await joined.read_at(offset, length) == whole[offset : offset + length]
