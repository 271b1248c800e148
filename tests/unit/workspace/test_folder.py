"""The downloads of this host."""

import uuid
from pathlib import Path

import pytest

from worker.errors import DiskFullError
from worker.workspace.folder import PartFile, Workspace

FULL = Path("/dev/full")


async def test_a_process_keeps_to_its_own_folder_and_leaves_nothing(tmp_path):
    workspace = Workspace(tmp_path, uuid.uuid4())
    folder = await workspace.open(12, 3)
    part = PartFile(folder / "part-0")
    part.append(b"bytes")
    part.close()
    assert (folder / "part-0").read_bytes() == b"bytes"
    await workspace.remove(12, 3)
    await workspace.close()
    assert list(tmp_path.iterdir()) == []


async def test_only_folders_of_named_processes_are_removed_and_strangers_stay(tmp_path):
    dead, alive = uuid.uuid4(), uuid.uuid4()
    for name in (str(dead), str(alive), "@eaDir", "lost+found"):
        (tmp_path / name).mkdir()
    workspace = Workspace(tmp_path, uuid.uuid4())
    assert set(workspace.others()) == {dead, alive}
    assert await workspace.remove_of([dead]) == 1
    assert {path.name for path in tmp_path.iterdir()} == {str(alive), "@eaDir", "lost+found"}


@pytest.mark.skipif(not FULL.exists(), reason="this system has no disk that is always full")
def test_a_full_disk_asks_for_patience():
    part = PartFile(FULL)
    with pytest.raises(DiskFullError) as caught:
        part.append(b"bytes")
    part.close()
    assert caught.value.seconds > 0
    assert caught.value.remedy
