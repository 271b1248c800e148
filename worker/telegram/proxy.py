"""Proxies between us and Telegram: SOCKS5, HTTP and Telegram's own MTProxy."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

from pyrogram.connection.proxy import HTTPProxy, MTProxy, SOCKS5Proxy, normalize_proxy
from python_socks import ProxyError

from worker.errors import UserError

if TYPE_CHECKING:
    from collections.abc import Iterator

# What a name or a password is preceded by, where SOCKS5 has one byte for its length.
_LONGEST = 255
_REMEDY = "write socks5://[user:password@]host:port, http://[user:password@]host:port or a tg://proxy?… link"


def parse_proxy(address: str) -> Any:
    """The proxy that this address means."""
    try:
        proxy = normalize_proxy(address)
    except (ValueError, TypeError):
        # Their text repeats the address, and with it its password.
        raise UserError("that is no proxy this program can use", remedy=_REMEDY) from None
    if not isinstance(proxy, HTTPProxy | MTProxy | SOCKS5Proxy):
        raise UserError("proxies of that kind are not used here", remedy=_REMEDY)
    if isinstance(proxy, MTProxy) and proxy.sni_hostname is not None:
        raise UserError("MTProxy secrets that imitate TLS (ee…) are not used here", remedy="use a dd… secret")
    if isinstance(proxy, HTTPProxy | SOCKS5Proxy):
        _refuse_untellable(proxy)
    return proxy


def _refuse_untellable(proxy: HTTPProxy | SOCKS5Proxy) -> None:
    """The dialling library fails on any other name or password, and names it whole when it does."""
    for told in (proxy.username or "", proxy.password or ""):
        if not (told.isascii() and told.isprintable() and len(told) <= _LONGEST):
            raise UserError(
                "the proxy's user name or password has letters that it cannot be told, or too many",
                remedy=f"use ASCII letters, digits and signs, {_LONGEST} at the most",
            )
    if isinstance(proxy, HTTPProxy) and ":" in (proxy.username or ""):
        raise UserError("the user name of an HTTP proxy cannot have a colon", remedy=_REMEDY)


@contextlib.contextmanager
def refusal_as_loss() -> Iterator[None]:
    """Whatever a proxy answers in the place of letting us through is a connection that failed."""
    try:
        yield
    except OSError:
        raise
    except ProxyError as error:
        raise ConnectionError(f"the proxy refused: {error}") from error
    except Exception as error:  # noqa: BLE001 - nonsense fails in the library in many ways
        # Its words are left out: they may repeat what was sent.
        raise ConnectionError(f"the proxy's answer cannot be read: {type(error).__name__}") from None


def shown(address: str) -> str:
    """A proxy without its secrets."""
    proxy = parse_proxy(address)
    return f"{proxy.scheme.value} at {proxy.hostname}:{proxy.port}"
