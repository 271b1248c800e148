"""``worker doctor``: could the fleet run here, and if not, one line that says what to do."""

import asyncio
import base64
import json

import pytest
from fake_postgres import fake_postgres, greeting, refusal
from fleet_rows import execute
from hang_guard import HANG_SECONDS
from pooler import pgbouncer
from server_folder import server_folder
from sqlalchemy.engine import make_url
from worker_command import worker

from worker.config.load import setting_names

_KEY = base64.b64encode(bytes(32)).decode()
_CHECKS = [
    "database",
    "schema",
    "pooling",
    "durability",
    "clock",
    "tls",
    "disk",
    "aes",
    "7z",
    "parsers",
    "rar",
    "secret key",
    "accounts",
]


def _assert_one_line(ended, *parts):
    assert ended.code == 2
    assert ended.err.startswith("worker: ")
    assert ended.err.count("\n") == 1, ended.err
    for part in parts:
        assert part in ended.err
    assert "hunter2" not in ended.out + ended.err


async def test_on_a_good_database_it_exits_0_with_every_check_and_setting_as_json(database_url, tmp_path):
    ended = await worker("doctor", "--json", database_url=database_url, secret_key=_KEY, data_dir=tmp_path)
    assert (ended.code, ended.err) == (0, "")
    document = json.loads(ended.out)
    assert document["healthy"] is True
    assert [check["name"] for check in document["checks"]] == _CHECKS
    assert {check["verdict"] for check in document["checks"]} <= {"ok", "warning"}
    assert [setting["name"] for setting in document["settings"]] == setting_names()
    by_name = {setting["name"]: setting for setting in document["settings"]}
    assert by_name["secret_key"] == {"name": "secret_key", "value": "********", "origin": "environment"}
    assert by_name["lease.lease_secs"]["origin"] == "default"
    assert _KEY not in ended.out


async def test_with_nothing_configured_it_starts_the_embedded_server_and_leaves_none_behind():
    with server_folder("fleet-doctor-") as folder:
        ended = await worker("doctor", "--json", data_dir=folder / "data")
        assert (ended.code, ended.err) == (0, "")
        assert json.loads(ended.out)["healthy"] is True
        assert list(folder.glob("data/postgres-*/data/postmaster.pid")) == []
        assert (folder / "data" / "secret.key").stat().st_mode & 0o777 == 0o600


async def test_for_people_it_prints_tables_with_the_values_and_where_they_came_from(database_url, tmp_path):
    (tmp_path / "worker.toml").write_text("[fleet]\nsets_in_flight = 3")
    ended = await worker(
        "doctor", cwd=tmp_path, database_url=database_url, secret_key=_KEY, data_dir=tmp_path
    )
    assert ended.code == 0
    lines = {line.split()[0]: line.split() for line in ended.out.splitlines() if line.strip()}
    assert lines["fleet.sets_in_flight"] == ["fleet.sets_in_flight", "3", "worker.toml"]
    assert lines["secret_key"][1:] == ["********", "environment"]
    assert all(check.split()[0] in lines for check in _CHECKS)


async def test_an_old_schema_is_a_failure_with_its_remedy_and_the_json_stays_valid(empty_database_url):
    ended = await worker("doctor", "--json", database_url=empty_database_url, secret_key=_KEY)
    _assert_one_line(ended, "schema: none, needs", "run: worker db upgrade")
    assert json.loads(ended.out)["healthy"] is False


async def test_a_missing_secret_key_is_a_failure(database_url):
    ended = await worker("doctor", database_url=database_url)
    _assert_one_line(ended, "no secret key is set", "WORKER_SECRET_KEY_FILE")


@pytest.mark.parametrize(
    ("settings", "parts"),
    [
        ({"database_url": "postgresql://x@127.0.0.1:1/x"}, ["127.0.0.1:1/x", "is PostgreSQL running there?"]),
        ({"database_url": "hunter2"}, ["database_url is not a database address"]),
        ({"database_url": "mysql://x:hunter2@h/d"}, ["database_url is for mysql, not PostgreSQL"]),
        ({"database_url": "postgresql://x@no-such-host.invalid/x"}, ["the host is not known"]),
        (
            {"database_url": "postgresql://x:hunter2@127.0.0.1/x?sslmode=never"},
            ["sslmode", "check database_url"],
        ),
        ({"databse_url": "x"}, ["unknown setting WORKER_DATABSE_URL"]),
        ({"log_level": "loud"}, ["setting log_level in environment"]),
        ({"secret_key_file": "/nowhere"}, ["WORKER_SECRET_KEY_FILE: cannot read /nowhere"]),
        ({"data_dir": "/dev/null/data"}, ["/dev/null/data", "set WORKER_DATA_DIR"]),
    ],
)
async def test_bad_input_is_one_line_on_stderr_and_exit_code_2(settings, parts):
    ended = await worker("doctor", **settings)
    _assert_one_line(ended, *parts)
    assert ended.out == ""


async def test_malformed_toml_is_one_line_with_the_place(tmp_path):
    (tmp_path / "worker.toml").write_text("[fleet\nsets_in_flight = 3")
    _assert_one_line(await worker("doctor", cwd=tmp_path), "worker.toml is not valid TOML", "line 1")


async def test_a_wrong_password_and_a_missing_database_are_told_apart(database_url):
    url = make_url(database_url)
    wrong, missing = await asyncio.gather(
        worker("doctor", database_url=url.set(password="hunter2").render_as_string(hide_password=False)),
        worker("doctor", database_url=url.set(database="nowhere").render_as_string(hide_password=False)),
    )
    _assert_one_line(wrong, "refused the login", "check user and password")
    _assert_one_line(missing, "there is no such database", "create it")


@pytest.mark.parametrize("version", ["14.19", "19.1"])
async def test_a_server_of_an_unknown_version_is_refused(version):
    async with fake_postgres(greeting(version)) as address:
        _assert_one_line(
            await worker("doctor", database_url=address),
            f"is PostgreSQL {version.split('.')[0]}",
            "version 15 to 18",
        )


async def test_a_full_server_is_told_apart_from_an_unreachable_one():
    async with fake_postgres(refusal("53300", "sorry, too many clients already")) as address:
        _assert_one_line(await worker("doctor", database_url=address), "no connection is free")


async def test_a_server_that_says_nothing_is_given_up():
    async with fake_postgres(None) as address:
        async with asyncio.timeout(HANG_SECONDS):
            ended = await worker("doctor", database_url=address)
        _assert_one_line(ended, "no answer in time")


async def test_a_transaction_pooler_before_the_database_is_a_failure(database_url):
    with pgbouncer(database_url, "transaction") as address:
        ended = await worker("doctor", "--json", database_url=address, secret_key=_KEY)
    _assert_one_line(ended, "a transaction pooler stands before the database", "connect directly")
    verdicts = {check["name"]: check["verdict"] for check in json.loads(ended.out)["checks"]}
    assert [name for name, verdict in verdicts.items() if verdict == "failure"] == ["pooling"]


async def test_accounts_that_wait_and_sessions_that_no_key_opens_are_named(database_url, tmp_path):
    await execute(
        database_url,
        """
        INSERT INTO accounts (phone, state) VALUES ('+10000000001', 'needs_login');
        INSERT INTO account_keys (account_id, dc_id, is_main, key_id, sealed_key) VALUES (1, 2, true, 'lost', '')
        """,
    )
    ended = await worker("doctor", "--json", database_url=database_url, secret_key=_KEY, data_dir=tmp_path)
    accounts, sessions = json.loads(ended.out)["checks"][-2:]
    assert accounts["remedy"] == "run: worker accounts login 1"
    assert (sessions["verdict"], ended.code) == ("failure", 2)
