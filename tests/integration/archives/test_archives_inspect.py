import json

import archive_samples as samples
import pytest
from click.testing import CliRunner

from worker.cli.archives import archives
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
    assert list(found) == [*promised, "unproven", "unchecked"]
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
