import json
import os
import random
import zlib
from pathlib import Path

import archive_samples as samples
import py7zr
import pytest
import rar_writer
from click.testing import CliRunner

from worker.cli.archives import archives
from worker.domain.listing import Limits
from worker.domain.split_plan import PREMIUM_LIMIT, STANDARD_LIMIT


def run(*arguments):
    return CliRunner().invoke(archives, ["inspect", *map(str, arguments)])


@pytest.fixture
def good(tmp_path):
    path = tmp_path / "good.zip"
    path.write_bytes(samples.zip_bytes())
    return path


def test_the_document_has_exactly_the_promised_keys(good):
    document = json.loads(run("--json", good).stdout)
    assert list(document) == ["sets", "ignored"]
    (found,) = document["sets"]
    promised = ["name", "format", "parts", "complete", "missing", "marks", "entries", "split"]
    assert list(found) == [*promised, "unproven", "unchecked", "entry_count"]
    assert (found["name"], found["format"], found["parts"]) == ("good", "zip", ["good.zip"])
    assert list(found["split"]) == ["standard", "premium"]


def test_bad_files_are_told_in_one_line_each_and_the_others_are_still_inspected(good, tmp_path):
    empty = tmp_path / "empty.zip"
    empty.touch()
    folder = tmp_path / "folder.zip"
    folder.mkdir()
    result = run("--json", tmp_path / "missing.zip", folder, empty, good)
    assert result.exit_code == 1
    lines = result.stderr.splitlines()
    assert len(lines) == 3
    for line, path in zip(lines, ["missing.zip", "folder.zip", "empty.zip"], strict=True):
        assert path in line
    document = json.loads(result.stdout)
    assert [found["name"] for found in document["sets"]] == ["good"]
    assert len(document["ignored"]) == 3


def test_an_unreadable_file_is_told_in_one_line(good, tmp_path, monkeypatch):
    locked = tmp_path / "locked.zip"
    locked.write_bytes(samples.zip_bytes())
    # Root may read anything, so permission bits alone would not show this on every machine.
    monkeypatch.setattr("worker.cli.archives.os.access", lambda path, mode: path != locked)
    result = run(locked, good)
    assert result.exit_code == 1
    assert result.stderr.count("\n") == 1
    assert "permission" in result.stderr
    assert "good (zip" in result.stdout


def test_other_files_are_ignored_with_their_reason_and_that_is_no_failure(good, tmp_path):
    note = tmp_path / "note.txt"
    note.write_text("hello")
    lone = tmp_path / "report.r12"
    lone.write_bytes(b"x")
    result = run("--json", note, lone, good)
    assert result.exit_code == 0
    ignored = {item["file"]: item["reason"] for item in json.loads(result.stdout)["ignored"]}
    assert set(ignored) == {str(note), str(lone)}


def test_the_same_file_given_twice_is_no_second_posting(good):
    result = run("--json", good, good)
    assert result.exit_code == 1
    assert len(json.loads(result.stdout)["sets"]) == 1


def test_an_oversized_file_is_split_for_each_kind_of_account(tmp_path):
    (big,) = samples.build("zip64_sparse", tmp_path).files
    (found,) = json.loads(run("--json", big).stdout)["sets"]
    for name, limit in (("standard", STANDARD_LIMIT), ("premium", PREMIUM_LIMIT)):
        parts = found["split"][name]
        assert sum(part["length"] for part in parts) == big.stat().st_size
        assert all(0 < part["length"] <= limit for part in parts)
        assert [part["name"] for part in parts] == [f"a.zip.{n:03d}" for n in range(1, len(parts) + 1)]


def test_missing_parts_are_named(tmp_path):
    sample = samples.build("rar4_legacy_volumes", tmp_path)
    result = run("--json", *sample.files[:-1])
    (found,) = json.loads(result.stdout)["sets"]
    assert not found["complete"]
    assert found["missing"] == [sample.files[-1].name]
    assert "incomplete" in found["marks"]
    assert result.exit_code == 0


def test_entries_beyond_the_listings_limit_are_counted(good, monkeypatch):
    monkeypatch.setattr("worker.cli.archives.LOCAL", Limits(entries=2))
    (found,) = json.loads(run("--json", good).stdout)["sets"]
    assert len(found["entries"]) == 2
    assert found["entry_count"] == len(samples.TREE)
    assert "truncated" in found["marks"]


def test_a_file_name_that_is_no_text_is_told_in_valid_json(tmp_path):
    folder = os.fsencode(tmp_path)
    (Path(os.fsdecode(folder + b"/caf\xe9.zip"))).write_bytes(samples.zip_bytes())
    names = [b"/caf\xe9.zip", b"/caf\xe9.txt", b"/gone\xe9.zip"]
    Path(os.fsdecode(folder + names[1])).write_bytes(b"x")
    result = run("--json", *(os.fsdecode(folder + name) for name in names))
    assert result.exit_code == 1
    assert not isinstance(result.exception, UnicodeError)
    document = json.loads(result.stdout_bytes.decode())
    assert document["sets"][0]["parts"] == ["caf\ufffd.zip"]
    assert [Path(item["file"]).name for item in document["ignored"]] == ["gone\ufffd.zip", "caf\ufffd.txt"]
    assert "gone\ufffd.zip: there is no such file" in result.stderr_bytes.decode()


def test_a_file_name_that_is_no_text_can_be_shown_to_a_person(tmp_path):
    """Each member ends with its volume, so that the volumes are named as unproven."""
    paths = [os.fsdecode(os.fsencode(tmp_path) + b"/caf\xe9.part%d.rar" % number) for number in (1, 2)]
    for number, path in enumerate(paths):
        member = rar_writer.file5(rar_writer.Piece(f"{number}.bin", b"x", 1, zlib.crc32(b"x")))
        end = rar_writer.end5(more=number < 1)
        Path(path).write_bytes(rar_writer.MAGIC5 + rar_writer.main5(number) + member + end)
    result = run(*paths)
    assert result.exit_code == 0
    shown = result.stdout_bytes.decode()
    assert "caf\ufffd (rar, 2 parts): no part is missing" in shown
    assert "another archive: caf\ufffd.part1.rar, caf\ufffd.part2.rar" in shown


def encrypted_slices(folder, seed):
    with py7zr.SevenZipFile(folder / "whole", "w", password="secret") as archive:
        archive.writestr(random.Random(seed).randbytes(100_000), "noise.bin")
    body = (folder / "whole").read_bytes()
    return [body[at : at + 40_000] for at in range(0, len(body), 40_000)]


def test_a_set_is_not_called_complete_where_a_foreign_part_would_go_unseen(tmp_path):
    """Without the password nothing tells the middle of one encrypted archive from that of another."""
    own, other = encrypted_slices(tmp_path, 1), encrypted_slices(tmp_path, 2)
    files = [tmp_path / f"a.7z.{number:03d}" for number in (1, 2, 3)]
    for file, body in zip(files, [own[0], other[1], own[2]], strict=True):
        file.write_bytes(body)
    (found,) = json.loads(run("--json", *files).stdout)["sets"]
    assert found["unproven"] == ["a.7z.002"]
    assert "unproven" in found["marks"]
    assert ": complete" not in run(*files).stdout


def test_a_whole_zip_beside_a_stray_part_is_whole_and_the_part_is_ignored(good, tmp_path):
    stray = tmp_path / "good.z01"
    stray.write_bytes(b"left of something else")
    document = json.loads(run("--json", good, stray).stdout)
    (found,) = document["sets"]
    assert found["complete"]
    assert found["parts"] == ["good.zip"]
    assert [item["file"] for item in document["ignored"]] == [str(stray)]


def test_what_follows_the_end_of_an_archive_is_a_set_of_its_own(tmp_path):
    volumes = rar_writer.rar5(samples.TREE, 60_000)
    for number, body in enumerate([*volumes, volumes[-1]], start=1):
        (tmp_path / f"a.part{number}.rar").write_bytes(body)
    files = sorted(tmp_path.iterdir())
    whole, left = json.loads(run("--json", *files).stdout)["sets"]
    assert whole["complete"]
    assert whole["parts"] == [file.name for file in files[:-1]]
    assert not left["complete"]
    assert left["parts"] == [files[-1].name]


def test_a_damaged_last_part_is_not_taken_for_the_whole(tmp_path):
    disks = samples.spanned_zip(samples.TREE, 80_000)
    bodies = {"a.z01": disks[0], "a.z02": disks[1], "a.zip": disks[2].replace(b"PK\5\6", b"PK\5\7")}
    for name, body in bodies.items():
        (tmp_path / name).write_bytes(body)
    (found,) = json.loads(run("--json", *sorted(tmp_path.iterdir())).stdout)["sets"]
    assert not found["complete"]
    assert found["parts"] == list(bodies)


def test_without_json_a_person_can_read_it(good):
    result = run(good)
    assert result.exit_code == 0
    assert "good (zip, 1 part): complete" in result.stdout
    assert "folder/noise.bin" in result.stdout


def test_a_name_cannot_steer_the_terminal(tmp_path):
    path = tmp_path / "a.zip"
    path.write_bytes(samples.zip_bytes({"\x1b[2Jgone\u202etxt": b"x"}))
    result = run(path)
    assert "\x1b" not in result.stdout
    assert "\u202e" not in result.stdout


def test_a_link_that_leads_nowhere_is_told_in_one_line(good, tmp_path):
    (tmp_path / "loop.zip").symlink_to("loop.zip")
    (tmp_path / "gone.zip").symlink_to("nothing")
    result = run(tmp_path / "loop.zip", tmp_path / "gone.zip", good)
    assert result.exit_code == 1
    assert len(result.stderr.splitlines()) == 2
    assert "good (zip, 1 part): complete" in result.stdout


def test_what_was_compared_with_nothing_is_said(tmp_path):
    (tar,) = samples.build("tar_gnu", tmp_path).files
    (found,) = json.loads(run("--json", tar).stdout)["sets"]
    assert found["marks"] == ["unverified"]
    assert sum(found["unchecked"].values()) == sum(map(len, samples.TREE.values()))
    assert "not checked: 155999 bytes" in run(tar).stdout


def test_help_shows_an_example():
    assert "worker archives inspect" in run("--help").stdout
