"""Reading the settings, and remembering where each value came from."""

from __future__ import annotations

import os
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel, SecretStr, ValidationError
from pydantic_settings import EnvSettingsSource

from worker.config.own_file import read_own_file
from worker.config.settings import Settings
from worker.errors import UserError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pydantic.fields import FieldInfo

_PREFIX = "WORKER_"
# Read before or beside the settings: the file to read them from, and the failpoints.
_OTHER_VARIABLES = {"WORKER_CONFIG", "WORKER_FAULTS"}
_DEFAULT_FILE = Path("worker.toml")


@dataclass(frozen=True, slots=True)
class Loaded:
    """The settings, and for each dotted name the place that set it."""

    settings: Settings
    origins: Mapping[str, str]

    def rows(self) -> Iterator[tuple[str, str, str]]:
        """Name, printable value (secrets masked) and origin of every setting."""
        for name, _field, value in _walk(self.settings):
            yield name, _printable(value), self.origins.get(name, "default")


def load(environ: Mapping[str, str] | None = None) -> Loaded:
    """Read environment, secret files and ``worker.toml``; refuse what is unknown or malformed, by name."""
    env = dict(os.environ if environ is None else environ)
    _refuse_unknown_variables(env)
    layers = [
        ("environment", _from_environment(env)),
        ("secret file", _from_secret_files(env)),
        _from_toml(env),
    ]
    origins: dict[str, str] = {}
    merged: dict[str, Any] = {}
    for origin, values in layers:
        for name, value in values.items():
            if name not in origins:
                origins[name] = origin
                _place(merged, name, value)
    try:
        settings = Settings.model_validate(merged)
    except ValidationError as error:
        raise _explain(error, origins) from None
    return Loaded(settings, origins)


def given(document: Mapping[str, Any], origin: str) -> Loaded:
    """Settings in which neither the environment nor a file has a say; ``origin`` is where they come from."""
    return Loaded(Settings.model_validate(document), dict.fromkeys(dict(_flatten(document)), origin))


class _GivenEnvironment(EnvSettingsSource):
    """The library's reading of the environment, from a mapping instead of the process's own."""

    def __init__(self, environ: Mapping[str, str]) -> None:
        self._given = environ
        super().__init__(Settings)

    def _load_env_vars(self) -> Mapping[str, str | None]:
        # Only the settings themselves: the library would take a secret's file for a key of its table.
        variables = map(_variable, setting_names())
        return {name.lower(): self._given[name] for name in variables if name in self._given}


def _from_environment(env: Mapping[str, str]) -> dict[str, Any]:
    return dict(_flatten(_GivenEnvironment(env)()))


def _from_secret_files(env: Mapping[str, str]) -> dict[str, Any]:
    values: dict[str, Any] = {}
    for name in _secret_names():
        variable = f"{_variable(name)}_FILE"
        if not (path := env.get(variable)):
            continue
        try:
            values[name] = Path(path).read_text(encoding="utf-8").strip()
        except (OSError, UnicodeDecodeError) as error:
            raise UserError(f"{variable}: cannot read {path}", remedy="name a readable text file") from error
        if not values[name]:
            raise UserError(f"{variable}: {path} is empty", remedy="put the secret into it")
    return values


def _from_toml(env: Mapping[str, str]) -> tuple[str, dict[str, Any]]:
    named = env.get("WORKER_CONFIG")
    path = Path(named) if named else _DEFAULT_FILE
    try:
        document = tomllib.loads(read_own_file(path))
    except tomllib.TOMLDecodeError as error:
        raise UserError(f"{path} is not valid TOML: {error}", remedy="correct that line") from None
    except (OSError, UnicodeDecodeError) as error:
        if isinstance(error, FileNotFoundError) and not named:
            return str(path), {}
        raise UserError(f"cannot read {path}: {error}", remedy="check WORKER_CONFIG") from None
    known = set(setting_names())
    tables = {name.partition(".")[0] for name in known if "." in name}
    values = {name: value for name, value in _flatten(document) if name not in tables or value != {}}
    for name in values:
        if name not in known:
            raise _unknown(name, str(path))
    return str(path), values


def _refuse_unknown_variables(env: Mapping[str, str]) -> None:
    known = {_variable(name) for name in setting_names()} | _OTHER_VARIABLES
    known |= {f"{_variable(name)}_FILE" for name in _secret_names()}
    for name in sorted(env):
        if name.startswith(_PREFIX) and name not in known:
            raise _unknown(name, "the environment")


def _unknown(name: str, where: str) -> UserError:
    return UserError(f"unknown setting {name} in {where}", remedy="docs/settings.md lists every setting")


def setting_names() -> list[str]:
    """The dotted name of every setting."""
    return [name for name, _, _ in _walk(Settings.model_construct())]


def _variable(name: str) -> str:
    return _PREFIX + name.replace(".", "__").upper()


def _secret_names() -> list[str]:
    return [
        name for name, field, _ in _walk(Settings.model_construct()) if "SecretStr" in str(field.annotation)
    ]


def _walk(model: BaseModel, prefix: str = "") -> Iterator[tuple[str, FieldInfo, Any]]:
    for name, field in type(model).model_fields.items():
        value = getattr(model, name)
        if isinstance(value, BaseModel):
            yield from _walk(value, f"{prefix}{name}.")
        else:
            yield prefix + name, field, value


def _flatten(values: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for name, value in values.items():
        # An empty table is kept as it stands, so that an unknown one is refused too.
        if isinstance(value, Mapping) and value:
            yield from _flatten(value, f"{prefix}{name}.")
        else:
            yield prefix + name, value


def _place(values: dict[str, Any], name: str, value: Any) -> None:
    *tables, last = name.split(".")
    for table in tables:
        values = values.setdefault(table, {})
    values[last] = value


def _printable(value: Any) -> str:
    if value is None:
        return "not set"
    return "********" if isinstance(value, SecretStr) else str(value)


def _explain(error: ValidationError, origins: Mapping[str, str]) -> UserError:
    first = error.errors(include_url=False, include_input=False)[0]
    name = ".".join(str(step) for step in first["loc"])
    where = f" in {origins[name]}" if name in origins else ""
    reason = first["msg"].removeprefix("Value error, ")
    return UserError(f"setting {name}{where}: {reason}", remedy="correct the value")
