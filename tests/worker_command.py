"""The ``worker`` command as a person runs it: a process of its own, with an environment of its own."""

import asyncio
import contextlib
import os
import re
import select
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from forked import fork_server, nothing, plain_environment

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
    terminal, inside = os.openpty()
    process = fork_server().start(
        *("worker", *arguments),
        env=_environment(settings) | {"TERM": "dumb"},
        cwd=Path("/"),
        streams=(inside, inside, inside),
        terminal=True,
    )
    os.close(inside)
    shown = _converse(terminal, list(answers))
    os.close(terminal)
    return Ended(_code(process.wait()), shown, "")


def _converse(terminal: int, answers: list[str]) -> str:
    shown, asked = "", 0
    # Reading from a terminal that nobody has open any more is an error.
    with contextlib.suppress(OSError):
        while select.select([terminal], [], [], 60)[0]:
            shown += os.read(terminal, 4096).decode()
            if answers and len(_QUESTION.findall(shown)) > asked:
                asked += 1
                os.write(terminal, answers.pop(0).encode())
    return shown.replace("\r", "")


def _code(ended: dict) -> int:
    """A signal is negative, as in :mod:`subprocess`."""
    return ended["exit"] if "exit" in ended else -ended["signal"]
