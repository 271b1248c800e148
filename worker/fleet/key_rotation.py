"""Changing the key that secrets are encrypted with, while the fleet works."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from worker.config.secret_key import (
    changing_keys,
    fresh_key,
    is_ours,
    retired_line,
    secret_keys,
    write_keys,
)
from worker.errors import UserError
from worker.store.account_secrets import reseal, sealed_under
from worker.store.sealing import Sealer, key_id

if TYPE_CHECKING:
    from worker.config.settings import Settings
    from worker.store.database import Database


@dataclass(frozen=True, slots=True)
class Rotated:
    """How many secrets were encrypted anew, under which key.

    ``left_over``: for each key that opens nothing and is a person's to remove, the line to put in its place.
    """

    rows: int
    key_id: str
    left_over: tuple[str, ...]


async def rotate_key(database: Database, settings: Settings) -> Rotated:
    """Seal everything under the first key, which is made here if the keys are ours to keep."""
    await _refuse_if_keys_are_missing(database, secret_keys(settings))
    if not is_ours(settings):
        keys = secret_keys(settings)
        if len(keys) == 1:
            raise UserError(
                "there is only one key, and it is not this program's to change",
                remedy="put a line made with `openssl rand -base64 32` above it in WORKER_SECRET_KEY_FILE"
                " on every host, then run this again",
            )
        return await _reseal(database, keys, tuple(map(retired_line, keys[1:])))
    with changing_keys(settings):
        keys = secret_keys(settings)
        if len(keys) == 1:
            # Both are there from before the first use of the fresh one until after the last of the old one.
            keys = [fresh_key(), *keys]
            write_keys(settings, keys)
        rotated = await _reseal(database, keys, ())
        # What was published under the key that goes has to be recognised by its markers also when this file
        # is all that is left.
        write_keys(settings, keys[:1], keys[1:])
        return rotated


async def _refuse_if_keys_are_missing(database: Database, keys: list[bytes]) -> None:
    here = {key_id(key) for key in keys}
    missing = sum(rows for used, rows in (await sealed_under(database)).items() if used not in here)
    if missing:
        raise UserError(
            f"stored secrets that were encrypted under a key that is not here: {missing}",
            remedy="add that key as a line below the first one, then run this again; if it is lost, log the"
            " accounts in anew: worker accounts login ACCOUNT --again",
        )


async def _reseal(database: Database, keys: list[bytes], left_over: tuple[str, ...]) -> Rotated:
    sealer = Sealer(*keys)
    return Rotated(await reseal(database, sealer), sealer.key_id, left_over)
