"""The downloads of this host."""

import uuid

from worker.workspace.folder import Workspace


async def test_a_process_keeps_to_its_own_folder_and_leaves_nothing(tmp_path):
    workspace = Workspace(tmp_path, uuid.uuid4())
    folder = await workspace.open(12, 3)
    (folder / "part-0").write_bytes(b"bytes")
    await workspace.remove(12, 3)
    await workspace.close()
    assert list(tmp_path.iterdir()) == []


async def test_the_next_owner_of_a_set_goes_on_with_the_files_of_the_last(tmp_path):
    dead = Workspace(tmp_path, uuid.uuid4())
    (await dead.open(12, 3) / "part-0").write_bytes(b"half")
    (await dead.open(13, 1) / "part-0").write_bytes(b"of another set")
    following = Workspace(tmp_path, uuid.uuid4())
    folder = await following.open(12, 4)
    assert (folder / "part-0").read_bytes() == b"half"
    assert not dead.folder(12, 3).exists()
    assert (dead.folder(13, 1) / "part-0").exists()


async def test_an_owner_never_takes_the_files_of_a_later_one(tmp_path):
    later = Workspace(tmp_path, uuid.uuid4())
    (await later.open(12, 5) / "part-0").write_bytes(b"theirs")
    late = Workspace(tmp_path, uuid.uuid4())
    folder = await late.open(12, 4)
    assert list(folder.iterdir()) == []
    await late.remove(12, 4)
    assert (later.folder(12, 5) / "part-0").read_bytes() == b"theirs"


async def test_whoever_ends_a_set_removes_what_earlier_owners_left_of_it(tmp_path):
    await Workspace(tmp_path, uuid.uuid4()).open(12, 3)
    last = Workspace(tmp_path, uuid.uuid4())
    await last.remove(12, 4)
    await last.close()
    assert list(tmp_path.iterdir()) == []


async def test_only_folders_of_named_processes_are_removed_and_strangers_stay(tmp_path):
    dead, alive = uuid.uuid4(), uuid.uuid4()
    for name in (str(dead), str(alive), "@eaDir", "lost+found"):
        (tmp_path / name).mkdir()
    workspace = Workspace(tmp_path, uuid.uuid4())
    assert set(workspace.others()) == {dead, alive}
    assert await workspace.remove_of([dead]) == 1
    assert {path.name for path in tmp_path.iterdir()} == {str(alive), "@eaDir", "lost+found"}


async def test_a_download_that_will_be_gone_on_with_outlives_its_process(tmp_path):
    dead = uuid.uuid4()
    for set_id in (1, 2):
        (await Workspace(tmp_path, dead).open(set_id, 1) / "part-0").write_bytes(b"half")
    workspace = Workspace(tmp_path, uuid.uuid4())
    assert workspace.sets_of([dead]) == {1, 2}
    assert await workspace.remove_of([dead], keep={2}) == 0
    assert [path.name for path in (tmp_path / str(dead)).iterdir()] == ["set-2-1"]
    assert await workspace.remove_of([dead]) == 1
    assert list(tmp_path.iterdir()) == []


async def test_a_folder_that_another_process_swept_first_is_no_error(tmp_path):
    assert await Workspace(tmp_path, uuid.uuid4()).remove_of([uuid.uuid4()]) == 0
