"""The settings as a page for people: ``python -m worker.config.describe > docs/settings.md``."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from worker.config.settings import Settings

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pydantic import BaseModel
    from pydantic.fields import FieldInfo

_INTRODUCTION = """\
# Settings

The environment goes over `worker.toml` (in the working folder, or where `WORKER_CONFIG` points), and that
over the defaults. `telegram.api_id` is `WORKER_TELEGRAM__API_ID` in the environment, and `api_id` below
`[telegram]` in the file. A secret can also be read from a file, named by its variable with `_FILE` added, as
in `WORKER_SECRET_KEY_FILE`. A name that is not listed here is refused, and so is a
`worker.toml` that belongs to another user or that others may write to. `worker doctor` prints every value in
force and where it came from.
"""


def page() -> str:
    """Every setting with its default and what it is for."""
    lines = [_INTRODUCTION]
    for table, model in _tables():
        if table:
            lines.append(f"## {table}\n\n{(model.__doc__ or '').strip()}\n")
        lines += ["| setting | default | what it is for |", "|---|---|---|"]
        prefix = f"{table}." if table else ""
        lines += [
            f"| `{prefix}{name}` | {_default(name, field)} | {field.description} |"
            for name, field in model.model_fields.items()
            if not hasattr(field.annotation, "model_fields")
        ]
        lines.append("")
    return "\n".join(lines)


def _tables() -> Iterator[tuple[str, type[BaseModel]]]:
    yield "", Settings
    for name, field in Settings.model_fields.items():
        if hasattr(field.annotation, "model_fields"):
            yield name, field.annotation  # type: ignore[misc] # hasattr has told models from the rest


def _default(name: str, field: FieldInfo) -> str:
    if name == "data_dir":
        return "the user's data folder; for root `/var/lib/archive-fleet`"
    return "none" if field.default is None else f"`{field.default}`"


if __name__ == "__main__":
    sys.stdout.write(page())
