"""Structured logs with nothing secret in them.

Readable on a terminal, JSON otherwise. Lines carry what is bound with :func:`bound` (worker, account,
channel, set). The last step before rendering redacts by key and by pattern, exceptions and foreign
loggers included.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import re
import sys
import traceback
from typing import TYPE_CHECKING, Any, Literal, TextIO

import structlog

from worker.plain_text import lines, plain, to_json, unguarded

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from contextlib import AbstractContextManager
    from types import TracebackType

    from structlog.stdlib import BoundLogger
    from structlog.typing import EventDict, WrappedLogger

_MASK = "[redacted]"
_OF_SEVERAL_LINES = ("exception", "stack")
# "exit_code" and "status_code" stay readable; a bare "code" is what Telegram sent to a phone.
_TELLTALE_NAMES = (
    r"phone|phone_number|phone_code|phone_code_hash|login_code|password|passwd|pwd|secret|secret_key|session_string|"
    r"token|api_hash|auth_key|authorization|cookie"
)
_SECRET_KEYS = re.compile(rf"((^|_)({_TELLTALE_NAMES}|dsn|database_url)|^(code|session))$", re.IGNORECASE)
_VALUE = r"""(?:b?"(?:[^"\\]|\\.)*"|b?'(?:[^'\\]|\\.)*'|(?:Bearer\s+)?[^\s,;)}\]]+)"""
_PATTERNS: tuple[tuple[re.Pattern[str], str], ...] = (
    # user:password@host in any URL; up to the last @, for a password may hold one
    (
        # Bounded: what strangers post may be full of beginnings that have no end.
        re.compile(r"(?P<head>\b[a-z][a-z0-9+.-]{0,30}://[^\s:/@]*):\S{1,500}@", re.IGNORECASE),
        rf"\g<head>:{_MASK}@",
    ),
    # api_hash="…", 'password': '…', WORKER_SECRET_KEY=…
    (
        re.compile(
            rf"""(?P<head>["']?\b(?:\w+_)?(?:{_TELLTALE_NAMES})["']?\s*[=:]\s*){_VALUE}""", re.IGNORECASE
        ),
        rf"\g<head>{_MASK}",
    ),
    # what Telegram sends to a phone has five or six digits; exit codes and error codes have fewer
    (
        re.compile(r"""(?P<head>\bcode["']?(?:\s+is)?\s*[=:]?\s*["']?)\d{5,6}\b""", re.IGNORECASE),
        rf"\g<head>{_MASK}",
    ),
    # +49 30 1234567 and the like
    (re.compile(r"\+\d[\d ()./-]{6,18}\d"), _MASK),
    # API hashes are 32 hexadecimal digits; content hashes have 64 and stay; keys have 512
    (re.compile(r"(?<![0-9a-fA-F])(?:[0-9a-fA-F]{32}|[0-9a-fA-F]{128,})(?![0-9a-fA-F])"), _MASK),
    # bot tokens
    (re.compile(r"\b\d{6,12}:[A-Za-z0-9_-]{30,}"), _MASK),
    # session strings are one long run of base64
    (re.compile(r"(?<![A-Za-z0-9_/+-])(?=[A-Za-z0-9_/+-]*[G-Zg-z_/+-])[A-Za-z0-9_/+-]{200,}={0,2}"), _MASK),
)


def redact_text(text: str) -> str:
    """Mask whatever in this text looks like a phone number, a password, a key or a session."""
    for pattern, mask in _PATTERNS:
        text = pattern.sub(mask, text)
    return text


def _redact_value(value: Any) -> Any:
    if isinstance(value, str):
        return redact_text(value)
    if isinstance(value, dict):
        return {
            redact_text(str(key)): _MASK if _is_secret(key) else _redact_value(item)
            for key, item in value.items()
        }
    if isinstance(value, list | tuple | set | frozenset):
        return [_redact_value(item) for item in value]
    if value is None or isinstance(value, bool | int | float):
        return value
    return redact_text(str(value))


def _is_secret(key: object) -> bool:
    return _SECRET_KEYS.search(str(key)) is not None


def redact(_logger: WrappedLogger, _method: str, event: EventDict) -> EventDict:
    """The last processor: nothing secret passes, whatever key or text it stands in."""
    redacted: EventDict = _redact_value(dict(event))
    return redacted


def _plain(_logger: WrappedLogger, _method: str, event: EventDict) -> EventDict:
    """For a terminal, which would obey strangers' texts; anything else is shown as Python writes it."""
    for key, value in event.items():
        if isinstance(value, str):
            event[key] = lines(value) if key in _OF_SEVERAL_LINES else plain(value)
    return {plain(key): value for key, value in event.items()}


def _one_line(event: EventDict, default: Callable[[Any], Any]) -> str:
    return to_json(event, indent=None, default=default)


def configure(
    level: str = "info", style: Literal["auto", "console", "json"] = "auto", stream: TextIO | None = None
) -> None:
    """Route every log line of this process, those of libraries too, through the redaction to ``stream``."""
    out = stream or unguarded(sys.stderr)
    console = style == "console" or (style == "auto" and out.isatty())
    renderers: list[structlog.typing.Processor] = (
        [_plain, structlog.dev.ConsoleRenderer(colors=out.isatty())]
        if console
        else [structlog.processors.JSONRenderer(serializer=_one_line)]
    )
    shared: list[structlog.typing.Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_log_level,
        structlog.stdlib.add_logger_name,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        structlog.processors.StackInfoRenderer(),
        # Rendered to text before the redaction, which has to see what would be printed.
        structlog.processors.format_exc_info,
    ]
    structlog.configure(
        processors=[*shared, structlog.stdlib.ProcessorFormatter.wrap_for_formatter],
        wrapper_class=structlog.stdlib.BoundLogger,
        logger_factory=structlog.stdlib.LoggerFactory(),
        cache_logger_on_first_use=False,
    )
    handler = logging.StreamHandler(out)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=[structlog.stdlib.PositionalArgumentsFormatter(), *shared],
            processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, redact, *renderers],
        )
    )
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level.upper())
    logging.captureWarnings(capture=True)
    sys.excepthook = _report_bug
    # At INFO these tell of every connection and every look at the schema.
    logging.getLogger("pyrogram").setLevel(max(logging.WARNING, root.level))
    logging.getLogger("alembic").setLevel(max(logging.WARNING, root.level))


def _report_bug(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    """What nobody caught is a bug and shows its traceback, but no secret in it."""
    told = redact_text("".join(traceback.format_exception(kind, error, trace)))
    print(lines(told), file=sys.stderr, end="")  # noqa: T201


def get_logger(name: str) -> BoundLogger:
    """A logger whose events are dotted names: ``log.info("set.published", set=12)``."""
    logger: BoundLogger = structlog.stdlib.get_logger(name)
    return logger


@contextlib.contextmanager
def at_work(what: str) -> Iterator[None]:
    """Name the running task after what it works on, for whoever looks at it from outside."""
    task = asyncio.current_task()
    assert task is not None, "only a task is at work"
    before = task.get_name()
    task.set_name(what)
    try:
        yield
    finally:
        task.set_name(before)


def bound(**context: Any) -> AbstractContextManager[None]:
    """Give every line logged inside this block (and in tasks started there) these fields."""
    return structlog.contextvars.bound_contextvars(**context)
