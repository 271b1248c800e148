"""The downloads of this host."""

import uuid

from worker.workspace.folder import PartFile, Workspace


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
