"""The extension, where it was built; an older one that is still lying about counts as none."""

from __future__ import annotations

from typing import Any

native: Any
try:
    from worker.cipher import _ige as native  # type: ignore[attr-defined,no-redef,unused-ignore]
except ImportError:
    native = None
else:
    native = native if hasattr(native, "open") else None
