"""What the library wants stored, kept in memory: the database holds what must last, encrypted."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pyrogram.storage import Storage

if TYPE_CHECKING:
    from collections.abc import Iterable


class MemoryStorage(Storage):
    """A session's data centre, key and user, and nothing of the library's peer cache.

    Peers are addressed by access hashes from our own tables, so the library never needs to look one up.
    """

    def __init__(self, *, dc_id: int | None = None, auth_key: bytes | None = None) -> None:
        self._values: dict[str, Any] = {"dc_id": dc_id, "auth_key": auth_key}

    @property
    def main_dc(self) -> int:
        """The data centre this session belongs to."""
        return int(self._values["dc_id"])

    @property
    def main_key(self) -> bytes:
        """The key agreed with it."""
        return bytes(self._values["auth_key"])

    async def open(self) -> None:
        """Nothing to open."""

    async def save(self) -> None:
        """Nothing to save: the owner of this object does."""

    async def close(self) -> None:
        """Nothing to close."""

    async def delete(self) -> None:
        """Forget everything."""
        self._values.clear()

    async def update_peers(self, peers: Iterable[Any]) -> None:
        """Not kept."""

    async def update_usernames(self, usernames: Iterable[Any]) -> None:
        """Not kept."""

    async def get_update_states(self, ids: Any = None) -> list[Any]:  # noqa: ARG002 - the library's signature
        return []

    async def set_update_state(self, update_state: Any) -> None:
        """Not kept: the cursor scan is the record."""

    async def delete_update_state(self, state_id: Any) -> None:
        """Not kept."""

    async def get_peer_by_id(self, peer_id: int) -> Any:
        raise KeyError(peer_id)

    async def get_peer_by_username(self, username: str) -> Any:
        raise KeyError(username)

    async def get_peer_by_phone_number(self, phone_number: str) -> Any:
        raise KeyError(phone_number)

    async def _value(self, name: str, value: Any) -> Any:
        if value is not None:
            self._values[name] = value
        return self._values.get(name)

    async def dc_id(self, value: Any = None) -> Any:
        return await self._value("dc_id", value)

    async def api_id(self, value: Any = None) -> Any:
        return await self._value("api_id", value)

    async def server_address(self, value: Any = None) -> Any:
        return await self._value("server_address", value)

    async def port(self, value: Any = None) -> Any:
        return await self._value("port", value)

    async def test_mode(self, value: Any = None) -> Any:
        return await self._value("test_mode", value)

    async def auth_key(self, value: Any = None) -> Any:
        return await self._value("auth_key", value)

    async def date(self, value: Any = None) -> Any:
        return await self._value("date", value)

    async def user_id(self, value: Any = None) -> Any:
        return await self._value("user_id", value)

    async def is_bot(self, value: Any = None) -> Any:
        return await self._value("is_bot", value)
