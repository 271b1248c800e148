"""What the library wants stored. What must last is handed on to whoever keeps it, encrypted.

The session and the keys of other data centres come from the database and go there; peers are addressed by
access hashes from our own tables. No file is written.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from pyrogram.storage import Storage

if TYPE_CHECKING:
    from collections.abc import Iterable


class KeyKeeper(Protocol):
    """Whoever keeps an account's keys of other data centres than its own."""

    async def keep(self, dc_id: int, key: bytes) -> None:
        """This key is authorised there from here on."""
        ...

    async def forget(self, dc_id: int) -> None:
        """The data centre does not know its key any more."""
        ...


@dataclass(slots=True)
class OtherKeys:
    """Keys of other data centres, remembered by this process alone unless there is a keeper."""

    known: dict[int, bytes] = field(default_factory=dict)
    keeper: KeyKeeper | None = None

    async def keep(self, dc_id: int, key: bytes) -> None:
        self.known[dc_id] = key
        if self.keeper is not None:
            await self.keeper.keep(dc_id, key)

    async def forget(self, dc_id: int) -> None:
        self.known.pop(dc_id, None)
        if self.keeper is not None:
            await self.keeper.forget(dc_id)


class MemoryStorage(Storage):
    """A session's data centre, key and user, and nothing of the library's peer cache."""

    def __init__(
        self,
        *,
        dc_id: int | None = None,
        auth_key: bytes | None = None,
        other_keys: OtherKeys | None = None,
    ) -> None:
        self._values: dict[str, Any] = {"dc_id": dc_id, "auth_key": auth_key}
        self.other_keys = other_keys or OtherKeys()

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
