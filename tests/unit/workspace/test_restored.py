import hashlib

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
