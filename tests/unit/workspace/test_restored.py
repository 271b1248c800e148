import hashlib
import os
import stat

import pytest

from worker.domain.package_content import PackageContent, StoredFile
from worker.errors import FleetError, UserError
from worker.workspace.restored import RestoredFiles, target_names

BODIES = {"Kit.part1.rar": b"a" * 1000, "Kit.part2.rar": b"b" * 700, "Kit.part3.rar": b""}
WHOLE = b"".join(BODIES.values())


def _content(digest=None, files=None):
    stored = tuple(StoredFile(name, len(body)) for name, body in (files or BODIES).items())
    return PackageContent(
        7, "Kit.rar", digest or hashlib.sha256(WHOLE).digest(), len(WHOLE), "published", (), stored
    )


def _write(files, data, step=333):
    for start in range(0, len(data), step):
        files.write(data[start : start + step])


def test_p9_volume_boundaries_come_back_as_they_were(tmp_path):
    files = RestoredFiles(_content(), tmp_path)
    with files.opened():
        _write(files, WHOLE)
        hashes = files.finish()
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == BODIES
    assert hashes == [hashlib.sha256(body).hexdigest() for body in BODIES.values()]


@pytest.mark.parametrize("cut", [1, 999, 1000, 1001, 1699, 1700])
def test_an_interrupted_restoration_goes_on_where_it_was(tmp_path, cut):
    first = RestoredFiles(_content(), tmp_path)
    with first.opened():
        _write(first, WHOLE[:cut])
    assert [path.name[0] for path in tmp_path.iterdir()] == ["."]
    second = RestoredFiles(_content(), tmp_path)
    with second.opened():
        assert second.position == cut
        _write(second, WHOLE[cut:])
        second.finish()
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == BODIES


def test_nothing_to_go_on_from_leaves_nothing_behind(tmp_path):
    with RestoredFiles(_content(), tmp_path).opened():
        pass
    assert list(tmp_path.iterdir()) == []


def test_a_wrong_hash_discards_what_came(tmp_path):
    files = RestoredFiles(_content(digest=bytes(32)), tmp_path)
    with files.opened():
        _write(files, WHOLE)
        with pytest.raises(FleetError, match="not those that were published"):
            files.finish()
    assert list(tmp_path.iterdir()) == []


def test_a_file_of_that_name_is_never_overwritten_nor_is_one_that_appears_on_the_way(tmp_path):
    target = tmp_path / "Kit.part2.rar"
    target.write_bytes(b"mine")
    with pytest.raises(UserError, match="is there already"), RestoredFiles(_content(), tmp_path).opened():
        pytest.fail("nothing is written then")
    target.unlink()
    files = RestoredFiles(_content(), tmp_path)
    with files.opened():
        _write(files, WHOLE)
        target.write_bytes(b"mine")
        with pytest.raises(UserError, match="has appeared meanwhile"):
            files.finish()
    assert target.read_bytes() == b"mine"


def _working_folder(folder):
    return folder / f".fetch-{_content().content_hash.hex()[:16]}"


def test_its_working_folder_is_closed_to_others_however_open_the_folder_around_it_is(tmp_path):
    tmp_path.chmod(0o777)
    # As an earlier version has left one.
    _working_folder(tmp_path).mkdir(mode=0o755)
    files = RestoredFiles(_content(), tmp_path)
    with files.opened():
        assert stat.S_IMODE(_working_folder(tmp_path).stat().st_mode) == 0o700
        _write(files, WHOLE)
        files.finish()
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == BODIES


@pytest.mark.parametrize("laid", ["a link", "a file", "open to all", "another's"])
def test_a_working_folder_that_somebody_else_has_laid_there_is_refused_and_left_alone(tmp_path, laid):
    (elsewhere := tmp_path / "elsewhere").mkdir()
    (shared := tmp_path / "shared").mkdir()
    (elsewhere / "00000").write_bytes(b"of its owner")
    trap = _working_folder(shared)
    if laid == "a link":
        trap.symlink_to(elsewhere)
    elif laid == "a file":
        trap.touch()
    else:
        trap.mkdir()
        (trap / "00000").symlink_to(elsewhere / "00000")
        trap.chmod(0o777 if laid == "open to all" else 0o755)
    if laid == "another's":
        if os.geteuid() != 0:
            pytest.skip("only root can give a folder away")
        os.chown(trap, 1, 1)
    with (
        pytest.raises(UserError, match=r"— remove it, or give another"),
        RestoredFiles(_content(), shared).opened(),
    ):
        pytest.fail("nothing is written then")
    assert (elsewhere / "00000").read_bytes() == b"of its owner"


def test_a_link_in_the_place_of_a_piece_is_not_followed(tmp_path):
    (victim := tmp_path / "victim").write_bytes(b"of its owner")
    (folder := tmp_path / "out").mkdir()
    _working_folder(folder).mkdir(mode=0o700)
    (_working_folder(folder) / "00000").symlink_to(victim)
    with pytest.raises(UserError, match="holds a link"), RestoredFiles(_content(), folder).opened():
        pytest.fail("nothing is written then")
    assert victim.read_bytes() == b"of its owner"


def test_a_working_folder_that_is_swapped_on_the_way_gets_nothing(tmp_path):
    files = RestoredFiles(_content(), tmp_path)
    with files.opened():
        _write(files, WHOLE[:1000])
        ours = _working_folder(tmp_path).rename(tmp_path / "taken away")
        _working_folder(tmp_path).mkdir()
        _write(files, WHOLE[1000:])
        assert list(_working_folder(tmp_path).iterdir()) == []
        files.finish()
    assert {name: (tmp_path / name).read_bytes() for name in BODIES} == BODIES
    assert list(ours.iterdir()) == []


def test_two_commands_never_write_the_same_package_at_once(tmp_path):
    first, second = RestoredFiles(_content(), tmp_path), RestoredFiles(_content(), tmp_path)
    with first.opened():
        with pytest.raises(UserError, match="another command is fetching"), second.opened():
            pytest.fail("one at a time")
        _write(first, WHOLE)
        first.finish()
    assert {path.name for path in tmp_path.iterdir()} == set(BODIES)


def test_p8_names_on_disk_are_harmless_and_each_there_once():
    assert target_names(["../../etc/passwd.zip", "a.zip", "A.zip", "con"]) == [
        "_.._etc_passwd.zip",
        "a.zip",
        "2 A.zip",
        "_con",
    ]


def test_bytes_beyond_the_end_are_refused(tmp_path):
    files = RestoredFiles(_content(), tmp_path)
    with files.opened(), pytest.raises(FleetError, match="more bytes came"):
        _write(files, WHOLE + b"x")
