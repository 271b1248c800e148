"""What the facts about a server and a host mean for the fleet."""

from dataclasses import replace

import pytest

from worker.archives.confinement import EVERYTHING
from worker.cipher import ige
from worker.status.health import (
    Verdict,
    check_host,
    judge_confinement,
    judge_decoders,
    judge_server,
    judge_tool,
    judge_transport,
)
from worker.store.address import transport_to
from worker.store.server_facts import ServerFacts

_GOOD = ServerFacts(
    version="17.2",
    fsync=True,
    sync_commit=True,
    server_time=1000.0,
    schema="0001",
    wanted_schema="0001",
    shares_backends=False,
)


def _judge(local_time=1000.0, **changed):
    return {check.name: check for check in judge_server(replace(_GOOD, **changed), local_time=local_time)}


def test_a_good_server_passes_every_check():
    assert {check.verdict for check in _judge().values()} == {Verdict.OK}


@pytest.mark.parametrize(
    ("changed", "name", "detail"),
    [
        ({"fsync": False}, "durability", "fsync off"),
        ({"sync_commit": False}, "durability", "synchronous_commit off"),
        ({"fsync": False, "sync_commit": False}, "durability", "fsync and synchronous_commit off"),
        ({"schema": None}, "schema", "none, needs 0001"),
        ({"schema": "0000"}, "schema", "0000, needs 0001"),
        ({"shares_backends": True}, "pooling", "a transaction pooler"),
    ],
)
def test_what_breaks_a_promise_is_a_failure_with_a_remedy(changed, name, detail):
    checks = _judge(**changed)
    assert checks[name].verdict is Verdict.FAILURE
    assert detail in checks[name].detail
    assert checks[name].remedy
    assert [other for other, check in checks.items() if check.verdict is not Verdict.OK] == [name]


@pytest.mark.parametrize("local_time", [990.0, 1010.0])
def test_a_wrong_clock_is_only_a_warning_because_the_fleet_uses_the_databases(local_time):
    clock = _judge(local_time)["clock"]
    assert (clock.verdict, clock.detail) == (Verdict.WARNING, "10.0 s from the database's")


async def test_too_little_disk_is_a_failure_even_before_the_folder_exists(tmp_path):
    disk, aes, _, parsers, rar = await check_host(tmp_path / "not" / "yet", min_free_mib=2**40)
    assert disk.verdict is Verdict.FAILURE
    assert "WORKER_DATA_DIR" in disk.remedy
    assert "MB/s" in aes.detail
    assert "limits" in parsers.detail
    assert rar.verdict is Verdict.OK


def test_what_holds_no_parser_here_is_named():
    whole = judge_confinement(EVERYTHING)
    assert (whole.verdict, "not in force" in whole.detail) == (Verdict.OK, False)
    some = judge_confinement(("limits", "no core dump"))
    assert some.verdict is Verdict.WARNING
    assert some.detail.endswith("not in force: no capability, no file, no socket")


def test_without_a_program_for_rar_its_packed_members_are_said_to_stay_unchecked():
    assert "not checked" in judge_tool(None).detail
    assert "7zz (/usr/bin/7zz)" in judge_tool("7zz (/usr/bin/7zz)").detail


async def test_a_data_folder_that_cannot_be_made_is_a_failure(tmp_path):
    (tmp_path / "file").touch(mode=0o400)
    disk, *_ = await check_host(tmp_path / "file" / "data", min_free_mib=0)
    assert disk.verdict is Verdict.FAILURE


async def test_the_slow_aes_path_is_a_warning_that_names_itself(tmp_path, monkeypatch):
    monkeypatch.setattr(ige, "_backend", ige.available()["openssl"])
    _, aes, *_ = await check_host(tmp_path, min_free_mib=0)
    assert aes.verdict is Verdict.WARNING
    assert "the slow path is in use" in aes.detail


def test_a_decoder_that_is_not_installed_is_a_warning_with_a_remedy():
    check = judge_decoders(["PPMd", "Deflate64"])
    assert check.verdict is Verdict.WARNING
    assert check.detail.startswith("PPMd, Deflate64: members are listed")
    assert "make clean install" in check.remedy
    assert judge_decoders([]).verdict is Verdict.OK


def test_a_database_elsewhere_without_verified_tls_is_a_warning_that_says_what_to_add():
    check = judge_transport(transport_to("postgresql://u:hunter2@db.example.org/d?sslmode=require"))
    assert check.verdict is Verdict.WARNING
    assert "db.example.org with sslmode=require" in check.detail
    assert "sslmode=verify-full&sslrootcert=" in check.remedy
    assert "hunter2" not in check.detail + check.remedy
    proven = judge_transport(transport_to("postgresql://u@db.example.org/d?sslmode=verify-full"))
    assert proven.verdict is Verdict.OK
