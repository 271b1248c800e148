"""What the demo makes and how it judges."""

import hashlib
import os
from types import SimpleNamespace

import pytest
import rarfile

from worker.demo.meter import Meter
from worker.demo.proof import Ledger, read_ledger
from worker.demo.rar_volumes import rar_volumes
from worker.demo.samples import Sample
from worker.demo.world import demo_folder
from worker.domain.marker import Marker
from worker.errors import UserError
from worker.pipeline.deps import Silent


def test_rar_volumes_are_read_by_a_library_that_did_not_write_them(tmp_path):
    members = {"a.txt": b"first", "b.bin": bytes(range(256)) * 40}
    for number, data in enumerate(rar_volumes(members, 4000), 1):
        (tmp_path / f"x.part{number}.rar").write_bytes(data)
    with rarfile.RarFile(tmp_path / "x.part1.rar") as archive:
        assert len(archive.volumelist()) == 3
        assert {name: archive.read(name) for name in archive.namelist()} == members


def test_the_meter_counts_a_byte_once_however_often_it_is_reported():
    meter = Meter(Silent())
    for done in (10, 30, 20, 30):
        meter.bytes_moved("a.zip", "upload", done, 30)
    meter.set_ended("a.zip", "published")
    meter.bytes_moved("a.zip", "upload", 5, 30)
    assert meter.moved == 35


def test_the_meter_counts_no_byte_that_was_copied():
    meter = Meter(Silent())
    meter.bytes_moved("a.zip", "fetch", 30, 30)
    meter.bytes_moved("a.zip", "copy", 10, 30)
    meter.bytes_moved("a.zip", "upload", 25, 30)
    meter.bytes_moved("a.zip", "copy", 30, 30)
    assert meter.moved == 30 + 15


CONTENT = bytes(range(100))


class _Destination:
    def __init__(self, *windows):
        self._windows = windows

    async def messages(self, channel):
        return [_message(offset, data) for offset, data in self._windows]


def _message(offset, data):
    digest = hashlib.sha256(CONTENT).digest()
    marker = Marker(digest, len(CONTENT), offset, len(data), 0, len(CONTENT), "a.zip", 1, 2, 3)
    sha256 = hashlib.sha256(data).hexdigest()
    return {"document_id": 1, "deleted": False, "text": marker.line(), "sha256": sha256}


@pytest.mark.parametrize(
    ("windows", "expected"),
    [
        ([(0, CONTENT)], Ledger(1, 1, 0, 0, 0)),
        ([(0, CONTENT[:60]), (60, CONTENT[60:])], Ledger(1, 1, 0, 0, 0)),
        ([(0, CONTENT), (0, CONTENT)], Ledger(1, 1, 1, 0, 0)),
        ([(0, CONTENT[:60])], Ledger(1, 0, 0, 1, 0)),
        ([(0, CONTENT[::-1])], Ledger(1, 0, 0, 1, 1)),
        ([], Ledger(1, 0, 0, 1, 0)),
    ],
)
async def test_the_ledger_tells_whole_from_doubled_lost_and_foreign(tmp_path, windows, expected):
    file = tmp_path / "a.zip"
    file.write_bytes(CONTENT)
    stage = SimpleNamespace(destination=5, publishable=[Sample((file,))])
    assert await read_ledger(_Destination(*windows), stage) == expected


def test_a_demo_s_folder_that_others_have_laid_or_may_write_to_is_refused(tmp_path, monkeypatch):
    """In a folder that everybody writes to its files could be links to those of whoever runs the demo."""
    monkeypatch.chdir(tmp_path)
    made = tmp_path / ".worker" / "demo"
    made.mkdir(parents=True)
    assert demo_folder(None) == made
    for each in (made, made.parent):
        each.chmod(0o757)
        with pytest.raises(UserError, match="can be changed by other users"):
            demo_folder(None)
        each.chmod(0o755)
    if os.geteuid() == 0:
        os.chown(made.parent, 1, 1)
        with pytest.raises(UserError, match="belongs to another user"):
            demo_folder(None)
    assert demo_folder(tmp_path / "named") == tmp_path / "named"
