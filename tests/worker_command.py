"""The ``worker`` command as a person runs it: a process of its own, with an environment of its own."""

import asyncio
import codecs
import contextlib
import os
import re
import select
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from forked import fork_server, nothing, plain_environment
from hang_guard import HANG_SECONDS

_INSTALLED = Path(sys.executable).with_name("worker")
# What a question ends with, and nothing else that is shown.
_QUESTION = re.compile(r"[)\]]: ")


@dataclass(frozen=True, slots=True)
class Ended:
    code: int
    out: str
    err: str


def _environment(settings: dict[str, object]) -> dict[str, str]:
    return plain_environment() | {f"WORKER_{name.upper()}": str(value) for name, value in settings.items()}


async def worker(*arguments: str, cwd: Path = Path("/"), **settings: object) -> Ended:
    """Run ``worker`` with only these ``WORKER_…`` settings."""
    with nothing() as empty, tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        process = fork_server().start(
            *("worker", *arguments),
            env=_environment(settings),
            cwd=cwd,
            streams=(empty, out.fileno(), err.fileno()),
        )
        ended = await asyncio.to_thread(process.wait)
        for stream in (out, err):
            stream.seek(0)
        return Ended(_code(ended), out.read().decode(), err.read().decode())


async def installed_worker(*arguments: str, cwd: Path = Path("/"), **settings: object) -> Ended:
    """Run the command that was installed, with only these settings: what :func:`worker` stands for."""
    process = await asyncio.create_subprocess_exec(
        *(_INSTALLED, *arguments),
        env=_environment(settings),
        cwd=cwd,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    out, err = await process.communicate()
    assert process.returncode is not None
    return Ended(process.returncode, out.decode(), err.decode())


def worker_at_a_terminal(*arguments: str, answers: tuple[str, ...] = (), **settings: object) -> Ended:
    """Run ``worker`` in a terminal of its own, type an answer at each question, and return what was shown."""
    asked = 0

    def answer(shown: str) -> str:
        nonlocal asked
        if asked == len(answers) or len(_QUESTION.findall(shown)) <= asked:
            return ""
        asked += 1
        return answers[asked - 1]

    environment = _environment(settings) | {"TERM": "dumb"}
    return _at_a_terminal(arguments, environment, Path("/"), answer)


def worker_on_a_screen(*arguments: str, cwd: Path, interrupt_at: str = "", columns: int = 80) -> Ended:
    """Run ``worker`` on a screen of that width; Ctrl-C is pressed once it has shown ``interrupt_at``."""
    keys = ["\x03"] if interrupt_at else []

    def press(shown: str) -> str:
        return keys.pop() if keys and interrupt_at in shown else ""

    environment = _environment({}) | {"TERM": "xterm-256color", "COLUMNS": str(columns), "LINES": "24"}
    return _at_a_terminal(arguments, environment, cwd, press)


def _at_a_terminal(
    arguments: tuple[str, ...], environment: dict[str, str], cwd: Path, typed: Callable[[str], str]
) -> Ended:
    terminal, inside = os.openpty()
    process = fork_server().start(
        *("worker", *arguments), env=environment, cwd=cwd, streams=(inside, inside, inside), terminal=True
    )
    os.close(inside)
    shown = _converse(terminal, typed)
    os.close(terminal)
    return Ended(_code(process.wait()), shown, "")


def _converse(terminal: int, typed: Callable[[str], str]) -> str:
    """What is shown until the end, while ``typed`` says what a person types at what they see."""
    decoder, shown = codecs.getincrementaldecoder("utf-8")(), ""
    # Reading from a terminal that nobody has open any more is an error.
    with contextlib.suppress(OSError):
        while select.select([terminal], [], [], HANG_SECONDS)[0]:
            shown += decoder.decode(os.read(terminal, 4096))
            os.write(terminal, typed(shown).encode())
    return shown.replace("\r", "")


def _code(ended: dict) -> int:
    """A signal is negative, as in :mod:`subprocess`."""
    return ended["exit"] if "exit" in ended else -ended["signal"]
