"""What the ledger hands out. Rows are frozen: a change is a call to the table that owns it."""

from __future__ import annotations

from dataclasses import dataclass, fields
from enum import StrEnum
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    import sqlite3


class Role(StrEnum):
    """What an account is in a channel."""

    CREATOR = "creator"
    ADMIN = "admin"
    MEMBER = "member"
    LEFT = "left"
    KICKED = "kicked"


@dataclass(frozen=True, slots=True)
class Key:
    """An auth key and whom it is authorised for."""

    key_id: int
    auth_key: bytes
    first_salt: int
    created_at: float
    dc_id: int
    user_id: int | None
    pending_user_id: int | None
    layer: int
    dead: str


@dataclass(frozen=True, slots=True)
class Account:
    """A user of this Telegram."""

    user_id: int
    phone: str
    first_name: str
    last_name: str
    username: str | None
    access_hash: int
    premium: int
    banned: int
    salt1: bytes | None
    salt2: bytes | None
    verifier: bytes | None
    hint: str
    pts: int
    last_id: int


@dataclass(frozen=True, slots=True)
class Channel:
    """A channel, or a group if it is no broadcast."""

    channel_id: int
    title: str
    about: str
    access_hash: int
    creator: int
    date: int
    broadcast: int
    forum: int
    noforwards: int
    hidden_history: int
    username: str | None
    invite: str | None
    pts: int
    last_id: int


@dataclass(frozen=True, slots=True)
class Member:
    """One account's place in one channel."""

    channel_id: int
    user_id: int
    role: Role
    date: int
    first_id: int
    folder: int
    read_max: int

    @property
    def inside(self) -> bool:
        return self.role not in (Role.LEFT, Role.KICKED)

    @property
    def may_administer(self) -> bool:
        return self.role in (Role.CREATOR, Role.ADMIN)


@dataclass(frozen=True, slots=True)
class Document:
    """A file whose bytes lie in the blob of its id."""

    document_id: int
    access_hash: int
    kind: str
    mime: str
    size: int
    file_name: str
    attributes: bytes
    date: int
    dc_id: int
    sha256: str | None


@dataclass(frozen=True, slots=True)
class Message:
    """A message in a box; ``peer_id`` is the other side of a private chat, None in channels."""

    box: int
    id: int
    peer_id: int | None
    from_id: int
    date: int
    text: str
    entities: bytes | None
    document_id: int | None
    kind: str
    action: bytes | None
    reply_to: int | None
    topic_id: int | None
    grouped_id: int | None
    edit_date: int | None
    fwd_from: bytes | None
    noforwards: int
    random_id: int | None
    deleted: int


Row = TypeVar("Row", Key, Account, Channel, Member, Document, Message)


_COLUMNS = {
    kind: tuple(field.name for field in fields(kind))
    for kind in (Key, Account, Channel, Member, Document, Message)
}


def build(kind: type[Row], row: sqlite3.Row) -> Row:
    """Make a row object of the columns it names."""
    values: dict[str, Any] = {name: row[name] for name in _COLUMNS[kind]}
    if kind is Member:
        values["role"] = Role(values["role"])
    return kind(**values)


def maybe(kind: type[Row], row: sqlite3.Row | None) -> Row | None:
    """Make a row object, or None if there was no row."""
    return None if row is None else build(kind, row)
