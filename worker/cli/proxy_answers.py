"""Where the address of a proxy comes from: its password from a file or a prompt, never from the command line.

What stands there can be read by every user of the machine, and stays in the shell's history.
"""

from __future__ import annotations

import re
import sys
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import click

from worker.cli.account_answers import file_option
from worker.errors import UserError

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

NO_PROXY = "none"
_SCHEME = re.compile(r"^[a-z0-9+.-]+://", re.IGNORECASE)
# What a link of Telegram's calls them.
_IN_A_LINK = re.compile(r"[?&](?:secret|pass)=", re.IGNORECASE)


def proxy_options(text: str) -> Callable[[Any], Any]:
    """``--proxy`` and ``--proxy-file``; what they say is to be had from :func:`proxy_address`."""

    def both(command: Any) -> Any:
        named = file_option("--proxy-file", "Read the proxy's address, password and all, from this file.")
        return click.option("--proxy", metavar="ADDRESS", help=text)(named(command))

    return both


def proxy_address(given: str | None, file: Path | None) -> str | None:
    """The address with its password; None where none was given."""
    if file is not None:
        if given is not None:
            raise UserError("--proxy and --proxy-file both name a proxy", remedy="give one of them")
        return _read(file)
    if given is None or given == NO_PROXY:
        return given
    scheme = _SCHEME.match(given)
    user, at, host = given[scheme.end() if scheme else 0 :].rpartition("@")
    if ":" in user or _IN_A_LINK.search(given):
        raise UserError(
            "a password on the command line can be read by every user of this machine",
            remedy="leave it out to be asked for it, or write the address into a file for --proxy-file",
        )
    return f"{given[: -len(host) - 1]}:{quote(_asked(host), safe='')}@{host}" if at else given


def _asked(host: str) -> str:
    if not sys.stdin.isatty():
        raise UserError(
            "the proxy's password is wanted, and there is no terminal to ask at",
            remedy="write its address, password and all, into a file and give --proxy-file FILE",
        )
    answer: str = click.prompt(f"Password of the proxy ({host})", hide_input=True)
    return answer


def _read(file: Path) -> str:
    try:
        address = file.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"cannot read {file}: {error}", remedy="name a readable text file") from error
    if not address:
        raise UserError(f"{file} is empty", remedy="write the proxy's address into it")
    return address
