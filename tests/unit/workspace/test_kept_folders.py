"""Bytes that are kept for a set's next attempt, and go when they are in the way."""

import uuid

import pytest

from worker.workspace.folder import Workspace
from worker.workspace.volume import Volume


@pytest.fixture
def workspace(tmp_path):
    return Workspace(tmp_path / "workspace", uuid.uuid4())


async def _fill(workspace: Workspace, set_id: int, fence: int = 1):
    folder = await workspace.open(set_id, fence)
    (folder / "part-0").write_bytes(b"half")
    return folder


async def test_a_kept_folder_becomes_that_of_the_next_attempt(workspace):
    old = await _fill(workspace, 7)
    await workspace.keep(7, 1)
    new = await workspace.open(7, 2)
    assert (new / "part-0").read_bytes() == b"half"
    assert not old.exists()
    assert workspace.kept == []


async def test_what_dead_processes_left_goes_too_when_room_is_needed(workspace, tmp_path):
    dead = uuid.uuid4()
    left = await _fill(Workspace(tmp_path / "workspace", dead), 9)
    await workspace.remove_of([dead], keep={9})
    assert left.exists()
    assert await workspace.make_room()
    assert not left.exists()


async def test_removing_a_set_removes_what_was_kept_of_it(workspace):
    old = await _fill(workspace, 7)
    await workspace.keep(7, 1)
    await workspace.remove(7, 2)
    assert not old.exists()


async def test_room_is_made_of_everything_kept_and_of_nothing_in_use(workspace):
    kept, used = await _fill(workspace, 7), await _fill(workspace, 8)
    await workspace.keep(7, 1)
    assert await workspace.make_room()
    assert not await workspace.make_room()
    assert (kept.exists(), used.exists()) == (False, True)


async def test_only_a_few_are_kept_and_the_oldest_goes_first(workspace):
    for set_id in range(10):
        await _fill(workspace, set_id)
        await workspace.keep(set_id, 1)
    assert workspace.kept == list(range(2, 10))
    assert not workspace.folder(0, 1).exists()


async def test_a_set_that_never_got_a_folder_has_nothing_to_keep(workspace):
    await workspace.keep(7, 1)
    assert workspace.kept == []


def test_a_volume_has_one_name_wherever_one_stands_on_it(tmp_path):
    deep = tmp_path / "not" / "made" / "yet"
    assert Volume(deep).name() == Volume(tmp_path).name()
    space = Volume(deep).space()
    assert 0 < space.free <= space.total
