"""No command shows raw what strangers have named things: every one that reads is walked through."""

import contextlib
import io
import json
import sys
import zipfile

import pytest
from fleet_rows import execute, insert_fleet

from worker.cli import main as entry
from worker.cli.main import COMMANDS

_NASTY = "E'\\x1b]0;x\\x07a\\u009b31mb\\u202ec\\u2066d\\x7fe\\u2028f\\ng'"
_RENAMED = f"""
    UPDATE accounts SET display_name = {_NASTY}, username = {_NASTY} WHERE id = 1;
    UPDATE channels SET title = {_NASTY} || id, username = NULL;
    UPDATE archive_sets SET name = {_NASTY}, reason = {_NASTY} WHERE state IN ('ready', 'failed', 'indexed');
    UPDATE packages SET file_name = {_NASTY}, creator = {_NASTY}, tags = ARRAY[{_NASTY}];
    UPDATE workers SET host = {_NASTY};
"""
_WALKED = [
    ["status"], ["status", "--compact"], ["status", "--json"],
    ["accounts", "list"], ["accounts", "list", "--json"], ["accounts", "show", "1"], ["accounts", "show", "1", "--json"],
    ["channels", "list"], ["channels", "list", "--json"],
    ["sets", "list"], ["sets", "list", "--json"], ["sets", "show", "1"], ["sets", "show", "1", "--json"],
    ["packages", "list"], ["packages", "list", "--json"], ["packages", "search", "a"], ["packages", "search", "a", "--json"],
    ["packages", "show", "1"], ["packages", "show", "1", "--json"],
    ["archives", "inspect", "FILE"], ["archives", "inspect", "--json", "FILE"],
    ["doctor"], ["doctor", "--json"], ["db", "current"], ["db", "cleanup", "--json"],
    ["fetch", "\x1b[31m"], ["packages", "show", "\x1b[31m"], ["pause", "--channel", "\x1b[31m"],
    ["sets", "list", "--channel", "\x9b31m"], ["accounts", "show", "\u202e"], ["channels", "source", "add", "\x1bc"],
]  # fmt: skip
# They need an account that is logged in, or a world of their own, and print by the same guarded streams.
_ELSEWHERE = {"demo", "run", "recover", "verify", "rebuild", "resume", "sandbox"}


@pytest.fixture
async def renamed(database_url):
    await insert_fleet(database_url)
    await execute(database_url, _RENAMED)
    return database_url


def _walk(arguments, monkeypatch):
    shown = io.StringIO(), io.StringIO()
    monkeypatch.setattr(sys, "stdout", shown[0])
    monkeypatch.setattr(sys, "stderr", shown[1])
    monkeypatch.setattr(sys, "argv", ["worker", *arguments])
    with contextlib.suppress(SystemExit):
        entry.main()
    return [stream.getvalue() for stream in shown]


def test_no_command_shows_raw_what_a_stranger_named(renamed, tmp_path, monkeypatch):
    monkeypatch.setenv("WORKER_DATABASE_URL", renamed)
    monkeypatch.setenv("WORKER_SECRET_KEY", "A" * 43 + "=")
    monkeypatch.setenv("WORKER_DATA_DIR", str(tmp_path))
    monkeypatch.setenv("COLUMNS", "200")
    file = tmp_path / "a\x1b[31m\u202e.zip"
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("b\x9b31m\u2066.txt", "hello")
    for arguments in _WALKED:
        out, err = _walk([str(file) if each == "FILE" else each for each in arguments], monkeypatch)
        raw = [
            character for character in out + err if not character.isprintable() and character not in "\n\t"
        ]
        assert raw == [], (arguments, out, err)
        if "--json" in arguments and out:
            assert json.loads(out) is not None


def test_every_command_is_walked_or_said_to_be_shown_elsewhere():
    walked = {arguments[0] for arguments in _WALKED}
    assert walked | _ELSEWHERE == set(COMMANDS)
    assert not walked & _ELSEWHERE
