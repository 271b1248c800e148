"""Logs: readable or JSON, with their context, and with nothing secret in them."""

import asyncio
import io
import json
import logging
import subprocess
import sys
import warnings

import pytest
import structlog

from worker import log

_API_HASH = "0123456789abcdef0123456789abcdef"
_CONTENT_HASH = "ab" * 32
_SESSION = "BQAAAGYA" + "Zm9vYmFyQmF6" * 28
_BOT_TOKEN = "123456789:AAHdqTcvCH1vGWJxfSeofSAs0K5PALDsaw0"


@pytest.fixture
def output(monkeypatch):
    """What was logged so far; the process's own logging is put back afterwards."""
    root = logging.getLogger()
    handlers, level, hook = root.handlers[:], root.level, sys.excepthook
    stream = io.StringIO()
    log.configure("debug", "json", stream)
    yield stream
    root.handlers[:], sys.excepthook = handlers, hook
    root.setLevel(level)
    logging.captureWarnings(capture=False)
    structlog.reset_defaults()


def _fail(message):
    raise ValueError(message)


def _lines(stream):
    return [json.loads(line) for line in stream.getvalue().splitlines()]


@pytest.mark.parametrize(
    "key",
    [
        *(
            "phone",
            "phone_number",
            "account_phone",
            "code",
            "phone_code",
            "phone_code_hash",
            "password",
            "session",
        ),
        *(
            "session_string",
            "token",
            "bot_token",
            "api_hash",
            "auth_key",
            "secret_key",
            "dsn",
            "database_url",
            "Password",
        ),
    ],
)
def test_a_value_with_a_secret_key_is_redacted_whatever_it_looks_like(output, key):
    log.get_logger("t").info("some.event", **{key: "plain"}, nested={key: ["plain"]})
    assert "plain" not in output.getvalue()
    assert _lines(output)[0][key] == "[redacted]"


@pytest.mark.parametrize(
    "key", ["exit_code", "status_code", "sessions_open", "tokens_left", "phones", "encoded"]
)
def test_a_key_that_only_resembles_a_secret_stays_readable(output, key):
    log.get_logger("t").info("some.event", **{key: 12345})
    assert _lines(output)[0][key] == 12345


@pytest.mark.parametrize(
    ("text", "secret"),
    [
        ("logging in as +49 170 1234567 now", "1234567"),
        ("logging in as +491701234567", "491701234567"),
        ("phone=491701234567", "491701234567"),
        ("call +1 (555) 010-9999.", "9999"),
        ("the code is 54321", "54321"),
        ("login code: 543210", "543210"),
        ("SignIn(phone_code='54321', x=1)", "54321"),
        ('{"phone_code_hash": "abc\\"def", "x": 1}', "def"),
        (f"session {_SESSION}", "Zm9v"),
        (f"token {_BOT_TOKEN}", "AAHdq"),
        ("token=abcdef", "abcdef"),
        ("Authorization: Bearer abc.def", "abc.def"),
        (f"hash {_API_HASH}", _API_HASH),
        ("WORKER_SECRET_KEY=c2VjcmV0", "c2VjcmV0"),
        ("postgresql://fleet:hunter2@db:5432/fleet", "hunter2"),
        ("postgresql://fleet:p@ss:w/rd@db/fleet", "w/rd"),
        ("host=db password=hunter2 user=fleet", "hunter2"),
        ("password: 'two words'", "words"),
        ("auth_key=b'\\x01\\x02'", "x01"),
        ("key " + "0f" * 256, "0f0f"),
    ],
)
def test_a_secret_is_recognised_in_running_text(output, text, secret):
    assert secret not in log.redact_text(text)
    log.get_logger("t").info(text, detail=text, many=[text], deep={"a": (text,)}, mapped={text: 1})
    assert secret not in output.getvalue()


@pytest.mark.parametrize(
    "text",
    [
        f"published {_CONTENT_HASH}",
        "postgresql://fleet@db:5432/fleet",
        "https://example.org/a:b",
        "exit code 1, error code=400, PHONE_CODE_INVALID",
        "set 1234567890123 of channel -1001234567890",
        "moved 104857600 bytes in 12.5 s (+3 parts)",
        "2026-01-02T03:04:05+00:00",
        "/srv/archive/" + "folder/" * 20 + "name.zip",
    ],
)
def test_what_operators_search_for_stays_readable(text):
    assert log.redact_text(text) == text


def test_a_secret_in_an_exception_is_redacted_and_the_traceback_stays(output):
    try:
        _fail("cannot reach postgresql://fleet:hunter2@db/fleet for +491701234567")
    except ValueError:
        log.get_logger("t").exception("some.failure")
    (line,) = _lines(output)
    assert "ValueError" in line["exception"]
    assert "test_log.py" in line["exception"]
    assert "hunter2" not in output.getvalue()
    assert "491701234567" not in output.getvalue()


def test_the_telegram_librarys_own_logger_is_redacted_too_with_arguments_and_exceptions(output):
    library = logging.getLogger("pyrogram.session.auth")
    try:
        _fail(f"api_hash={_API_HASH}")
    except ValueError:
        library.warning("sign in of %s with %s", "+491701234567", _SESSION, exc_info=True)
    (line,) = _lines(output)
    assert (line["level"], line["logger"]) == ("warning", "pyrogram.session.auth")
    assert "ValueError" in line["exception"]
    for secret in ("491701234567", "Zm9v", _API_HASH):
        assert secret not in output.getvalue()


def test_the_telegram_library_is_heard_from_warnings_on(output):
    logging.getLogger("pyrogram.connection").info("connected")
    assert output.getvalue() == ""


def test_objects_are_redacted_as_they_would_be_printed(output):
    class Login:
        def __repr__(self):
            return "Login(phone_number='+491701234567')"

    log.get_logger("t").info(
        "some.event", login=Login(), error=ValueError("password=hunter2"), raw=b"token=abc"
    )
    assert not {"1701234567", "hunter2", "token=abc"} & set(output.getvalue().split("'"))
    assert "hunter2" not in output.getvalue()


async def test_context_is_on_every_line_of_the_block_and_of_its_tasks(output):
    async def work():
        log.get_logger("t").info("inner.event")

    with log.bound(worker="w1", account=3, channel=7, set=12):
        await asyncio.gather(work())
        logging.getLogger("library").warning("foreign")
    log.get_logger("t").info("outer.event")
    inner, foreign, outer = (line for line in _lines(output) if line["logger"] in {"t", "library"})
    for line in (inner, foreign):
        assert (line["worker"], line["account"], line["channel"], line["set"]) == ("w1", 3, 7, 12)
    assert "worker" not in outer


def test_json_lines_carry_time_level_and_logger(output):
    log.get_logger("worker.t").info("some.event", count=3)
    (line,) = _lines(output)
    assert line.pop("timestamp").endswith("Z")
    assert line == {"event": "some.event", "count": 3, "level": "info", "logger": "worker.t"}


def test_the_level_is_obeyed(output):
    log.configure("warning", "json", output)
    log.get_logger("t").info("quiet")
    log.get_logger("t").warning("loud")
    assert [line["event"] for line in _lines(output)] == ["loud"]


def test_warnings_of_libraries_become_log_lines(output):
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        logging.captureWarnings(capture=True)
        warnings.warn("old way, password=hunter2", stacklevel=1)
        logging.captureWarnings(capture=False)
    assert "hunter2" not in output.getvalue()
    assert _lines(output)[0]["logger"] == "py.warnings"


class _Terminal(io.StringIO):
    def isatty(self):
        return True


def test_a_terminal_gets_readable_lines_and_a_pipe_gets_json(output):
    terminal, pipe = _Terminal(), io.StringIO()
    for stream in (terminal, pipe):
        log.configure("info", "auto", stream)
        log.get_logger("t").info("some.event", password="hunter2", set=4)
    assert json.loads(pipe.getvalue())["set"] == 4
    with pytest.raises(json.JSONDecodeError):
        json.loads(terminal.getvalue())
    assert "some.event" in terminal.getvalue()
    assert "hunter2" not in terminal.getvalue() + pipe.getvalue()


def test_exceptions_are_redacted_on_a_terminal_without_a_complaint_of_the_renderer(output, recwarn):
    terminal = _Terminal()
    log.configure("info", "console", terminal)
    try:
        _fail("password=hunter2")
    except ValueError:
        log.get_logger("t").exception("some.failure")
    assert "ValueError" in terminal.getvalue()
    assert "hunter2" not in terminal.getvalue()
    assert [str(warning.message) for warning in recwarn] == []


def test_an_uncaught_bug_shows_its_traceback_without_its_secrets():
    script = "from worker import log; log.configure(); raise ValueError('postgresql://u:hunter2@h/d')"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.returncode == 1
    assert "Traceback" in done.stderr
    assert "ValueError: postgresql://u:[redacted]@h/d" in done.stderr
    assert "hunter2" not in done.stderr.replace(script, "")
