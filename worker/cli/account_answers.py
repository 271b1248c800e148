"""Where numbers, codes and passwords come from: a person at a terminal, or files if nobody is there."""

from __future__ import annotations

import asyncio
import contextlib
import sys
import threading
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from worker.domain.phone import international
from worker.errors import UserError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_TRIES_AT_A_TERMINAL = 3


def file_option(name: str, text: str) -> Callable[[Any], Any]:
    """An option that names a file, which need not be there yet."""
    return click.option(name, type=click.Path(dir_okay=False, path_type=Path), help=text)


def phone_number(given: str) -> str:
    """The number as Telegram wants it."""
    number = international(given)
    if number is None:
        raise UserError("that is no phone number", remedy="write it with its country code, like +49…")
    return number


def asked_number(command: str) -> str:
    """The number that the person at the terminal means, since the command names nobody."""
    if not sys.stdin.isatty():
        raise UserError(
            "no phone number was given, and there is no terminal to ask at",
            remedy=f"run: worker accounts {command} PHONE",
        )
    return phone_number(click.prompt("Phone number (with its country code)"))


@dataclass(frozen=True, slots=True)
class Answers:
    """Asks one question at a time, however many logins wait for theirs."""

    code_file: Path | None
    password_file: Path | None
    _turn: asyncio.Lock = field(default_factory=asyncio.Lock)

    @property
    def tries(self) -> int:
        """How often a wrong answer may be corrected: a file would only give the same one again."""
        return 1 if self.code_file or self.password_file or not sys.stdin.isatty() else _TRIES_AT_A_TERMINAL

    async def code(self, account: str) -> str:
        """The code that Telegram has sent to this account."""
        return await self._answer("Code that Telegram has sent", "code", self.code_file, account, hide=False)

    async def password(self, account: str) -> str:
        """The password of this account's second step."""
        return await self._answer("Password", "password", self.password_file, account, hide=True)

    async def _answer(self, question: str, what: str, file: Path | None, account: str, *, hide: bool) -> str:
        if file is not None:
            return _read(file, what, account)
        if not sys.stdin.isatty():
            raise UserError(
                f"the login of account {account} waits for its {what}, and there is no terminal to ask at",
                remedy=f"write it into a file and run: worker accounts login {account} --{what}-file FILE",
            )
        async with self._turn:
            return await _at_the_terminal(f"{question} (account {account})", hide=hide)


def _read(file: Path, what: str, account: str) -> str:
    try:
        answer = file.read_text(encoding="utf-8").strip()
    except FileNotFoundError:
        answer = ""
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"cannot read {file}: {error}", remedy="name a readable text file") from error
    if not answer:
        raise UserError(
            f"the login of account {account} waits for its {what}",
            remedy=f"write it into {file} and run: worker accounts login {account} --{what}-file {file}",
        )
    return answer


async def _at_the_terminal(question: str, *, hide: bool) -> str:
    """Ask in a thread that nobody waits for: whoever gives up must not have to press a key first."""
    loop = asyncio.get_running_loop()
    answer: asyncio.Future[str] = loop.create_future()

    def ask() -> None:
        try:
            text = click.prompt(question, hide_input=hide)
        except click.Abort:
            text = None
        with contextlib.suppress(RuntimeError):
            loop.call_soon_threadsafe(_settle, answer, text)

    with _terminal_as_it_was():
        threading.Thread(target=ask, daemon=True).start()
        return await answer


def _settle(answer: asyncio.Future[str], text: str | None) -> None:
    if answer.done():
        return
    if text is None:
        answer.set_exception(UserError("no answer was given", remedy="run the command again to go on"))
    else:
        answer.set_result(text)


@contextlib.contextmanager
def _terminal_as_it_was() -> Iterator[None]:
    """Whoever is interrupted while typing a password wants to see again what is typed after it."""
    import termios  # noqa: PLC0415 - where there is a terminal to ask at, there is this module

    before = termios.tcgetattr(sys.stdin)
    try:
        yield
    finally:
        termios.tcsetattr(sys.stdin, termios.TCSADRAIN, before)
