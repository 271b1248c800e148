"""What all tables share: names of constraints, times from the fleet's clock, checked states."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sqlalchemy import (
    BigInteger,
    Boolean,
    CheckConstraint,
    Column,
    ForeignKey,
    Identity,
    Integer,
    MetaData,
    Text,
    func,
    text,
)
from sqlalchemy.dialects.postgresql import BYTEA, TIMESTAMP

if TYPE_CHECKING:
    from sqlalchemy.types import TypeEngine

metadata = MetaData(
    naming_convention={
        "pk": "%(table_name)s_pkey",
        "fk": "%(table_name)s_%(column_0_name)s_fkey",
        "uq": "%(table_name)s_%(column_0_name)s_key",
        "ck": "%(table_name)s_%(constraint_name)s_check",
    }
)

Time = TIMESTAMP(timezone=True)


def identity(kind: type[TypeEngine[int]] = BigInteger) -> Column[int]:
    """Our own number for a row; never Telegram's."""
    return Column("id", kind, Identity(always=True), primary_key=True)


def required(name: str, kind: Any, *rest: Any, default: str | None = None) -> Column[Any]:
    """A column that always has a value, perhaps the database's default."""
    return Column(
        name, kind, *rest, nullable=False, server_default=None if default is None else text(default)
    )


def now_column(name: str) -> Column[Any]:
    """A time that is the fleet's now unless given."""
    return Column(name, Time, nullable=False, server_default=func.fleet_now())


def flag(name: str, *, default: bool = False) -> Column[bool]:
    """A boolean with a default."""
    return Column(name, Boolean, nullable=False, server_default=text(str(default).lower()))


def hash_column(name: str, *, nullable: bool = False, unique: bool = False) -> Column[bytes]:
    """A SHA-256: 32 bytes, nothing else."""
    check = CheckConstraint(f"octet_length({name}) = 32", name=name)
    return Column(name, BYTEA, check, nullable=nullable, unique=unique)


def checked(name: str, kind: Any, condition: str, *rest: Any, **options: Any) -> Column[Any]:
    """A column whose values are bounded by a CHECK named after it."""
    return Column(name, kind, *rest, CheckConstraint(f"{name} {condition}", name=name), **options)


def state_column(
    *states: str, name: str = "state", default: str | None = None, nullable: bool = False
) -> Column[str]:
    """One of a few words."""
    allowed = ", ".join(f"'{state}'" for state in states)
    check = CheckConstraint(f"{name} IN ({allowed})", name=name)
    server_default = None if default is None else text(f"'{default}'")
    return Column(name, Text, check, nullable=nullable, server_default=server_default)


def reference(
    name: str,
    table: str,
    *,
    on_delete: str,
    kind: Any = Integer,
    nullable: bool = False,
    primary_key: bool = False,
) -> Column[Any]:
    """A foreign key that says what happens when its row goes."""
    key = ForeignKey(f"{table}.id", ondelete=on_delete)
    return Column(name, kind, key, nullable=nullable and not primary_key, primary_key=primary_key)
