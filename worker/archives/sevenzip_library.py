"""py7zr, also where a decoder that it imports is absent: it takes time until every package has its wheels.

Everything in an archive is listed all the same; what is packed in that way counts as not unpacked here.
"""
# ruff: noqa: E402 - what stands in for an absent decoder must be there before py7zr looks for it

from __future__ import annotations

import importlib
import sys
from types import ModuleType
from typing import Any

# By module, what it unpacks. Whatever else py7zr imports has a wheel for every Python, or is Python.
_METHODS = {"pyppmd": "PPMd", "inflate64": "Deflate64", "bcj": "programs filtered by BCJ"}


class _Absent(ModuleType):
    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        raise UnsupportedCompressionMethodError(None, f"{self.__name__} is not installed")


def _stand_in() -> list[str]:
    absent = []
    for name in _METHODS:
        try:
            importlib.import_module(name)
        except ImportError:
            sys.modules[name] = _Absent(name)
            absent.append(name)
    return absent


_absent = _stand_in()
from py7zr import SevenZipFile
from py7zr.compressor import SevenZipDecompressor
from py7zr.exceptions import PasswordRequired, UnsupportedCompressionMethodError
from py7zr.io import BytesIOFactory

for _name in _absent:
    # For everybody else it is as absent as before.
    del sys.modules[_name]

UNREADABLE = tuple(_METHODS[name] for name in _absent)

__all__ = [
    "UNREADABLE", "BytesIOFactory", "PasswordRequired", "SevenZipDecompressor", "SevenZipFile",
    "UnsupportedCompressionMethodError",
]  # fmt: skip
