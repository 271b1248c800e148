"""A download on the disk: any order in, the right hash out, and nothing fetched twice after a kill."""

import hashlib
import itertools
import os

import pytest

from worker.errors import NotBeforeError, RetryableError
from worker.workspace import part_file
from worker.workspace.part_file import PartFile

UNIT = 1000
DATA = os.urandom(10 * UNIT + 123)


def opened(path, data=DATA, identity="a document"):
    digest = hashlib.sha256()
    return PartFile(path, len(data), unit=UNIT, identity=identity, digests=[digest]), digest


def give(file, numbers, data=DATA):
    for number in numbers:
        file.take(number * UNIT, memoryview(data)[number * UNIT : (number + 1) * UNIT])


@pytest.mark.parametrize(
    "order",
    [range(11), range(10, -1, -1), [5, 0, 1, 10, 2, 9, 3, 4, 8, 7, 6]],
    ids=["front", "back", "mixed"],
)
def test_ranges_may_come_in_any_order(tmp_path, order):
    file, digest = opened(tmp_path / "part-0")
    give(file, order)
    file.hash_what_is_there()
    assert file.is_complete
    assert digest.digest() == hashlib.sha256(DATA).digest()
    assert (tmp_path / "part-0").read_bytes() == DATA
    assert file.done == len(DATA)
    file.close()


def test_what_was_taken_before_a_kill_is_neither_missing_nor_lost(tmp_path):
    file, _ = opened(tmp_path / "part-0")
    give(file, [0, 1, 2, 7])
    # No close: the process is gone, and so are its hash and its memory.
    again, digest = opened(tmp_path / "part-0")
    again.hash_what_is_there()
    assert again.missing() == [3, 4, 5, 6, 8, 9, 10]
    assert again.done == 4 * UNIT
    give(again, again.missing())
    again.hash_what_is_there()
    assert again.is_complete
    assert digest.digest() == hashlib.sha256(DATA).digest()


def test_the_bytes_of_another_document_count_for_nothing(tmp_path):
    file, _ = opened(tmp_path / "part-0")
    give(file, range(5))
    again, _ = opened(tmp_path / "part-0", identity="another document")
    assert len(again.missing()) == 11
    assert (tmp_path / "part-0").stat().st_size == 0


def test_a_map_from_before_the_last_boot_counts_for_nothing(tmp_path, monkeypatch):
    file, _ = opened(tmp_path / "part-0")
    give(file, range(5))
    monkeypatch.setattr(part_file, "_boot", lambda: "another boot")
    again, _ = opened(tmp_path / "part-0")
    assert len(again.missing()) == 11


def test_data_that_was_cut_off_on_the_disk_is_noticed(tmp_path):
    file, _ = opened(tmp_path / "part-0")
    give(file, range(5))
    os.truncate(tmp_path / "part-0", 2500)
    again, _ = opened(tmp_path / "part-0")
    with pytest.raises(RetryableError):
        again.hash_what_is_there()


def test_nothing_is_written_after_the_file_was_closed(tmp_path):
    file, _ = opened(tmp_path / "part-0")
    file.close()
    with pytest.raises(RetryableError):
        give(file, [0])
    file.close()


def test_a_full_disk_is_a_reason_to_wait(tmp_path, monkeypatch):
    file, _ = opened(tmp_path / "part-0")

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(part_file.os, "pwrite", full)
    with pytest.raises(NotBeforeError, match="No space left"):
        give(file, [0])
    assert len(file.missing()) == 11


def test_several_hashes_see_every_byte_once(tmp_path):
    own, whole = hashlib.sha256(), hashlib.sha256(b"before")
    file = PartFile(tmp_path / "part-0", len(DATA), unit=UNIT, identity="x", digests=[own, whole])
    give(file, itertools.chain(range(10, 4, -1), range(5)))
    file.hash_what_is_there()
    assert own.digest() == hashlib.sha256(DATA).digest()
    assert whole.digest() == hashlib.sha256(b"before" + DATA).digest()


def test_an_empty_file_is_complete_at_once(tmp_path):
    file, digest = opened(tmp_path / "part-0", b"")
    file.hash_what_is_there()
    assert file.missing() == []
    assert file.is_complete
    assert file.done == 0
    assert digest.digest() == hashlib.sha256().digest()
