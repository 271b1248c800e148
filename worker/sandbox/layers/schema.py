"""TL constructors by their definition: enough to read and write objects the library has no classes for."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pyrogram.raw.core import Bool, Double, Int, Long, String, TLObject, Vector
from pyrogram.raw.core.primitives.bytes import Bytes

if TYPE_CHECKING:
    from io import BytesIO

_PLAIN: dict[str, Any] = {
    "int": Int,
    "long": Long,
    "string": String,
    "bytes": Bytes,
    "double": Double,
    "Bool": Bool,
}
_FIELD = re.compile(r"(?P<name>\w+):(?:(?P<flags>\w+)\.(?P<bit>\d+)\?)?(?P<kind>[\w<>#]+)")


@dataclass(frozen=True, slots=True)
class Field:
    """One field; ``flags`` names the bit field that says whether it is there."""

    name: str
    kind: str
    flags: str = ""
    bit: int = 0


@dataclass(frozen=True, slots=True)
class Constructor:
    """One line of a schema."""

    name: str
    number: int
    fields: tuple[Field, ...]

    def read(self, data: BytesIO) -> dict[str, Any]:
        """Return the values of the fields that are there; the number itself was read before."""
        values: dict[str, Any] = {}
        bits: dict[str, int] = {}
        for field in self.fields:
            if field.kind == "#":
                bits[field.name] = Int.read(data)
            elif field.flags and not bits[field.flags] >> field.bit & 1:
                continue
            else:
                values[field.name] = True if field.kind == "true" else _read(field.kind, data)
        return values

    def write(self, values: dict[str, Any]) -> bytes:
        """Return the object's bytes; values that are None or False leave their bit unset."""
        pieces = [self.number.to_bytes(4, "little")]
        for field in self.fields:
            value = values.get(field.name)
            if field.kind == "#":
                pieces.append(Int(self._bits(field.name, values)))
            elif field.kind != "true" and not (field.flags and value is None):
                pieces.append(_write(field.kind, value))
        return b"".join(pieces)

    def _bits(self, flags: str, values: dict[str, Any]) -> int:
        there = (field for field in self.fields if field.flags == flags and _is_there(field, values))
        total = 0
        for field in there:
            total |= 1 << field.bit
        return total


def _is_there(field: Field, values: dict[str, Any]) -> bool:
    value = values.get(field.name)
    return bool(value) if field.kind == "true" else value is not None


def _read(kind: str, data: BytesIO) -> Any:
    if kind.startswith("Vector<"):
        return TLObject.read(data, _PLAIN[kind[7:-1]])
    return (_PLAIN.get(kind) or TLObject).read(data)


def _write(kind: str, value: Any) -> bytes:
    if isinstance(value, list):
        return bytes(Vector(value, _PLAIN[kind[7:-1]] if kind.startswith("Vector<") else None))
    if kind in ("int", "long"):
        value = int(value)
    return bytes(_PLAIN[kind](value)) if kind in _PLAIN else bytes(value.write())


def parse(text: str) -> list[Constructor]:
    """Return the constructors of a schema file; lines that start with // are comments."""
    found = []
    for line in text.splitlines():
        if not line or line.startswith("//"):
            continue
        head, *fields = line.split()
        name, _, number = head.partition("#")
        found.append(Constructor(name, int(number, 16), tuple(_field(field) for field in fields)))
    return found


def _field(text: str) -> Field:
    match = _FIELD.fullmatch(text)
    if match is None:
        raise ValueError(f"not a field of a schema: {text}")
    return Field(match["name"], match["kind"], match["flags"] or "", int(match["bit"] or 0))
