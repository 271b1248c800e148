"""Proxies between us and Telegram: SOCKS5, HTTP and Telegram's own MTProxy."""

from __future__ import annotations

from typing import Any

from pyrogram.connection.proxy import HTTPProxy, MTProxy, SOCKS5Proxy, normalize_proxy

from worker.errors import UserError

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
    return proxy


def shown(address: str) -> str:
    """A proxy without its secrets."""
    proxy = parse_proxy(address)
    return f"{proxy.scheme.value} at {proxy.hostname}:{proxy.port}"
