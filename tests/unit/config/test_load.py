"""Settings: environment over worker.toml over defaults, and every value with its origin."""

import os
from pathlib import Path

import pytest
from pydantic import SecretStr

from worker.config.load import load, setting_names
from worker.config.settings import Settings, default_data_dir
from worker.errors import UserError


@pytest.fixture
def toml(tmp_path):
    def write(text):
        path = tmp_path / "worker.toml"
        path.write_text(text)
        return {"WORKER_CONFIG": str(path)}

    return write


def _origin(loaded, name):
    return {row[0]: row[2] for row in loaded.rows()}[name]


def test_with_nothing_set_every_value_is_the_default_and_says_so(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    loaded = load({})
    assert loaded.settings.rate_limits.get_history_per_min == 30
    assert loaded.settings.data_dir == default_data_dir()
    assert {origin for _, _, origin in loaded.rows()} == {"default"}


def test_the_file_goes_over_the_defaults_and_the_environment_over_the_file(toml):
    env = toml("[rate_limits]\nsearch_per_min = 7\nmax_retries = 8\n[lease]\nlease_secs = 40")
    loaded = load({**env, "WORKER_RATE_LIMITS__MAX_RETRIES": "9"})
    limits = loaded.settings.rate_limits
    assert (limits.search_per_min, limits.max_retries, limits.get_contacts_per_min) == (7, 9, 5)
    assert _origin(loaded, "rate_limits.search_per_min") == env["WORKER_CONFIG"]
    assert _origin(loaded, "rate_limits.max_retries") == "environment"
    assert _origin(loaded, "rate_limits.get_contacts_per_min") == "default"


def test_a_worker_toml_that_others_may_write_to_is_refused(toml):
    path = Path((env := toml('log_level = "debug"'))["WORKER_CONFIG"])
    path.chmod(0o646)
    with pytest.raises(UserError, match=rf"{path} can be changed by other users — run: chmod go-w"):
        load(env)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file away")
@pytest.mark.parametrize(
    ("uid", "gid", "refused"), [(1, 0, "another user"), (0, 1, "by other users"), (0, 0, None)]
)
def test_a_worker_toml_is_its_user_s_or_root_s_and_writable_by_their_own_group_at_most(
    toml, uid, gid, refused
):
    path = Path((env := toml('log_level = "debug"'))["WORKER_CONFIG"])
    path.chmod(0o664)
    os.chown(path, uid, gid)
    if refused is None:
        assert load(env).settings.log_level == "debug"
        return
    with pytest.raises(UserError, match=refused):
        load(env)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a pipe away")
def test_a_pipe_that_somebody_else_has_laid_in_the_working_folder_holds_nothing_up(tmp_path, monkeypatch):
    os.mkfifo(tmp_path / "worker.toml")
    os.chown(tmp_path / "worker.toml", 1, 1)
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UserError, match="another user"):
        load({})


def test_a_worker_toml_in_the_working_folder_is_read_without_being_named(tmp_path, monkeypatch):
    (tmp_path / "worker.toml").write_text('log_level = "debug"')
    monkeypatch.chdir(tmp_path)
    loaded = load({})
    assert loaded.settings.log_level == "debug"
    assert _origin(loaded, "log_level") == "worker.toml"


def test_the_rate_limits_have_the_defaults_that_operators_know():
    limits = Settings().rate_limits.model_dump()
    assert limits == {
        "inter_batch_delay_ms": 1000,
        "inter_job_delay_ms": 3000,
        "initial_backoff_ms": 100,
        "max_backoff_ms": 60_000,
        "backoff_multiplier": 2.0,
        "jitter_factor": 0.1,
        "max_retries": 5,
        "flood_wait_buffer_min_secs": 1,
        "flood_wait_buffer_max_secs": 2,
        "flood_wait_escalation_count": 3,
        "flood_wait_escalation_window_mins": 60,
        "flood_wait_escalation_extra_secs": 300,
        "activity_log_retention_days": 7,
        "get_history_per_min": 30,
        "search_per_min": 20,
        "get_contacts_per_min": 5,
        "send_message_per_min": 30,
        "get_participants_per_min": 20,
        "premium_factor": 1.5,
        "other_calls_per_min": 60,
        "private_chat_per_min": 60,
        "group_chat_per_min": 20,
        "profile": "telegram",
    }


@pytest.mark.parametrize(
    "variable",
    [
        "WORKER_DATABSE_URL",
        "WORKER_RATE_LIMITS__SPEED",
        "WORKER_RATE_LIMITS",
        "WORKER_data_dir",
        "WORKER_LOG_LEVEL_FILE",
    ],
)
def test_an_unknown_variable_is_refused_by_name(variable):
    with pytest.raises(UserError, match=f"unknown setting {variable} in the environment"):
        load({variable: "1"})


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("databse_url = 'x'", "databse_url"),
        ("[rate_limits]\nspeed = 1", "rate_limits.speed"),
        ("[unheard_of]", "unheard_of"),
        ("[telegram.deep]\nx = 1", "telegram.deep.x"),
        ("[data_dir]\nx = 1", "data_dir.x"),
        ("telegram = 3", "telegram"),
    ],
)
def test_an_unknown_key_in_the_file_is_refused_by_name(toml, text, name):
    with pytest.raises(UserError, match=rf"unknown setting {name} in .*worker\.toml"):
        load({**toml(text), "WORKER_DATA_DIR": "/x", "WORKER_TELEGRAM__API_ID": "1"})


def test_an_empty_table_of_ours_is_no_mistake(toml):
    assert load(toml("[telegram]")).settings.telegram.port == 443


@pytest.mark.parametrize(
    ("variable", "value", "name"),
    [
        ("WORKER_TELEGRAM__API_ID", "abc", "telegram.api_id"),
        ("WORKER_TELEGRAM__PORT", "70000", "telegram.port"),
        ("WORKER_LOG_LEVEL", "loud", "log_level"),
        ("WORKER_RATE_LIMITS__SEARCH_PER_MIN", "0", "rate_limits.search_per_min"),
        ("WORKER_LEASE__LEASE_SECS", "inf", "lease.lease_secs"),
        ("WORKER_LEASE__LEASE_SECS", "nan", "lease.lease_secs"),
        ("WORKER_TRANSFER__STANDARD_LIMIT_MIB", "2001", "transfer.standard_limit_mib"),
        ("WORKER_DATA_DIR", "", "data_dir"),
    ],
)
def test_a_bad_value_is_refused_with_its_name_and_place(variable, value, name):
    with pytest.raises(UserError, match=f"setting {name} in environment: "):
        load({variable: value})


def test_a_bad_value_in_the_file_is_refused_with_the_files_name(toml):
    with pytest.raises(UserError, match=r"setting fleet\.max_attempts in .*worker\.toml: "):
        load(toml("[fleet]\nmax_attempts = []"))


@pytest.mark.parametrize(
    ("variable", "value", "reason"),
    [
        ("WORKER_LEASE__HEARTBEAT_SECS", "20", "lease_secs must be at least 2 times heartbeat_secs"),
        ("WORKER_RATE_LIMITS__MAX_BACKOFF_MS", "50", "max_backoff_ms must be at least initial_backoff_ms"),
        (
            "WORKER_RATE_LIMITS__FLOOD_WAIT_BUFFER_MIN_SECS",
            "3",
            "flood_wait_buffer_max_secs must be at least flood_wait_buffer_min_secs",
        ),
        ("WORKER_FLEET__RETRY_CAP_SECS", "1", "retry_cap_secs must be at least retry_base_secs"),
    ],
)
def test_settings_that_contradict_each_other_are_refused_together(variable, value, reason):
    with pytest.raises(UserError, match=reason):
        load({variable: value})


def test_a_refused_secret_is_not_repeated_in_the_message(toml):
    with pytest.raises(UserError) as refused:
        load(toml("secret_key = ['hunter2']"))
    assert "secret_key" in str(refused.value)
    assert "hunter2" not in str(refused.value)


@pytest.mark.parametrize("text", ["a = \n", "a = 1 b", "=", "\x00"])
def test_malformed_toml_is_refused_with_the_line(toml, text):
    with pytest.raises(UserError, match=r"worker\.toml is not valid TOML: .*line 1"):
        load(toml(text))


def test_a_file_that_was_named_but_is_not_there_is_refused():
    with pytest.raises(UserError, match=r"cannot read /nowhere/worker\.toml.*check WORKER_CONFIG"):
        load({"WORKER_CONFIG": "/nowhere/worker.toml"})


def test_secrets_are_read_from_files_and_the_variable_itself_goes_first(tmp_path):
    (tmp_path / "url").write_text("postgresql://u:p@h/d\n")
    env = {"WORKER_DATABASE_URL_FILE": str(tmp_path / "url")}
    loaded = load(env)
    assert loaded.settings.database_url == SecretStr("postgresql://u:p@h/d")
    assert _origin(loaded, "database_url") == "secret file"
    both = load({**env, "WORKER_DATABASE_URL": "postgresql://v@h/d"})
    assert both.settings.database_url == SecretStr("postgresql://v@h/d")
    assert _origin(both, "database_url") == "environment"


def test_nested_secrets_have_a_file_too(tmp_path):
    (tmp_path / "hash").write_text("0123456789abcdef")
    loaded = load({"WORKER_TELEGRAM__API_HASH_FILE": str(tmp_path / "hash")})
    assert loaded.settings.telegram.api_hash == SecretStr("0123456789abcdef")


def test_a_secret_file_that_is_missing_or_empty_is_refused_by_its_variable(tmp_path):
    (tmp_path / "empty").write_text("\n")
    with pytest.raises(UserError, match="WORKER_SECRET_KEY_FILE: cannot read /nowhere"):
        load({"WORKER_SECRET_KEY_FILE": "/nowhere"})
    with pytest.raises(UserError, match=r"WORKER_SECRET_KEY_FILE: .* is empty"):
        load({"WORKER_SECRET_KEY_FILE": str(tmp_path / "empty")})


def test_secrets_are_masked_in_the_rows_and_in_every_print_of_the_settings():
    loaded = load({"WORKER_SECRET_KEY": "hunter2", "WORKER_DATABASE_URL": "postgresql://u:hunter2@h/d"})
    rows = {name: value for name, value, _ in loaded.rows()}
    assert rows["secret_key"] == rows["database_url"] == "********"
    assert rows["telegram.api_hash"] == "not set"
    assert "hunter2" not in repr(loaded) + str(loaded.settings) + repr(loaded.settings.model_dump())


def test_a_tilde_in_the_data_folder_means_the_home_folder(toml, monkeypatch):
    monkeypatch.setenv("HOME", "/home/somebody")
    assert str(load(toml('data_dir = "~/fleet"')).settings.data_dir) == "/home/somebody/fleet"


def test_failpoints_and_the_files_own_name_are_not_taken_for_settings(toml):
    load({**toml(""), "WORKER_FAULTS": "kill=1", "PATH": "/bin", "WORKERS": "3"})


def test_every_setting_has_a_row(tmp_path):
    assert [row[0] for row in load({}).rows()] == setting_names()
    assert len(setting_names()) == len(set(setting_names())) > 40
