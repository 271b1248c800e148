"""Whether the fleet could run here: one check per line, each with what to do about it."""

from __future__ import annotations

import asyncio
import os
import shutil
import time
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from worker.archives.confinement import EVERYTHING
from worker.store.address import transport_to
from worker.store.server_facts import read_server_facts

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from worker.store.address import Transport
    from worker.store.server_facts import ServerFacts

_MAX_CLOCK_SKEW_SECONDS = 2.0
_COMPILE = "install a C compiler"


class Verdict(StrEnum):
    """How a check ended. Only a failure keeps the fleet from running."""

    OK = "ok"
    WARNING = "warning"
    FAILURE = "failure"


@dataclass(frozen=True, slots=True)
class Check:
    """One thing that was looked at."""

    name: str
    verdict: Verdict
    detail: str
    remedy: str = ""


async def check_database(address: str) -> list[Check]:
    """Version, schema, durability, pooling and clock of the server at ``address``."""
    before = time.time()
    facts = await read_server_facts(address)
    return [
        *judge_server(facts, local_time=(before + time.time()) / 2),
        judge_transport(transport_to(address)),
    ]


def judge_server(facts: ServerFacts, *, local_time: float) -> Iterator[Check]:
    """What these facts mean for the fleet."""
    yield Check("database", Verdict.OK, f"PostgreSQL {facts.version}")
    if facts.schema == facts.wanted_schema:
        yield Check("schema", Verdict.OK, facts.wanted_schema)
    else:
        found = facts.schema or "none"
        yield Check(
            "schema", Verdict.FAILURE, f"{found}, needs {facts.wanted_schema}", "run: worker db upgrade"
        )
    if facts.shares_backends:
        remedy = "connect directly, or use session pooling: locks and notifications need a session"
        yield Check("pooling", Verdict.FAILURE, "a transaction pooler stands before the database", remedy)
    else:
        yield Check("pooling", Verdict.OK, "sessions are our own")
    risky = [
        name for name, on in (("fsync", facts.fsync), ("synchronous_commit", facts.sync_commit)) if not on
    ]
    if risky:
        remedy = "switch it on: a crash of the server could forget what was published"
        yield Check("durability", Verdict.FAILURE, f"{' and '.join(risky)} off", remedy)
    else:
        yield Check("durability", Verdict.OK, "fsync and synchronous_commit on")
    skew = abs(facts.server_time - local_time)
    skewed = skew > _MAX_CLOCK_SKEW_SECONDS
    yield Check(
        "clock",
        Verdict.WARNING if skewed else Verdict.OK,
        f"{skew:.1f} s from the database's",
        "synchronise this host's clock; the fleet itself uses the database's" if skewed else "",
    )


def judge_transport(transport: Transport) -> Check:
    """Who may read along on the way to the database, or pass for it."""
    if not transport.elsewhere:
        return Check("tls", Verdict.OK, "the database is on this host")
    where = ", ".join(transport.elsewhere)
    if transport.is_proven:
        return Check("tls", Verdict.OK, f"{where} proves itself: sslmode=verify-full")
    return Check(
        "tls",
        Verdict.WARNING,
        f"{where} with sslmode={transport.tls}: anybody on the way there can pass for the database",
        "add ?sslmode=verify-full&sslrootcert=FILE to database_url, FILE with the certificate that signed"
        " the server's",
    )


async def check_host(data_dir: Path, min_free_mib: int) -> list[Check]:
    """Disk, AES, decoders and helpful programs of this machine."""
    # The libraries take a second to import; a wrong address should be told at once.
    from worker.archives.nursery import Nursery  # noqa: PLC0415
    from worker.archives.sevenzip_library import UNREADABLE  # noqa: PLC0415
    from worker.telegram.aes_backend import measure_aes_backend  # noqa: PLC0415

    backend = await asyncio.to_thread(measure_aes_backend)
    speed = f"{backend.name}, {backend.megabytes_per_second:.3g} MB/s"
    aes = Check("aes", Verdict.OK, speed)
    if not backend.is_fast:
        aes = Check(
            "aes",
            Verdict.WARNING,
            f"{speed}: the slow path is in use",
            f"{_COMPILE}, then: make clean install",
        )
    async with Nursery() as nursery:
        confinement = await nursery.confinement()
    parsers = [judge_confinement(confinement.kept), judge_tool(confinement.tool)]
    return [_check_disk(data_dir, min_free_mib), aes, judge_decoders(UNREADABLE), *parsers]


def judge_decoders(unreadable: Sequence[str]) -> Check:
    """What it means that the decoders of these methods of 7z are not installed."""
    if not unreadable:
        return Check("7z", Verdict.OK, "every method is unpacked")
    detail = f"{', '.join(unreadable)}: members are listed, but not unpacked to check or preview them"
    return Check(
        "7z", Verdict.WARNING, detail, f"{_COMPILE} and the headers of Python, then: make clean install"
    )


def _check_disk(data_dir: Path, min_free_mib: int) -> Check:
    elsewhere = "set WORKER_DATA_DIR to another folder"
    try:
        existing = next(folder for folder in (data_dir, *data_dir.parents) if folder.exists())
        free_mib = shutil.disk_usage(existing).free // 2**20
    except OSError as error:
        return Check("disk", Verdict.FAILURE, f"{data_dir}: {error.strerror}", elsewhere)
    if not os.access(existing, os.W_OK | os.X_OK):
        return Check("disk", Verdict.FAILURE, f"{data_dir} cannot be written to", elsewhere)
    detail = f"{free_mib / 1024:.1f} GiB free at {data_dir}"
    if free_mib < min_free_mib:
        return Check("disk", Verdict.FAILURE, detail, f"free some space, or {elsewhere}")
    return Check("disk", Verdict.OK, detail)


def judge_confinement(kept: Sequence[str]) -> Check:
    """What it means that a parser of archives keeps these of its rights."""
    lacking = [each for each in EVERYTHING if each not in kept]
    if not lacking:
        return Check("parsers", Verdict.OK, f"held by the kernel: {', '.join(kept)}")
    detail = f"held by the kernel: {', '.join(kept) or 'nothing'}; not in force: {', '.join(lacking)}"
    remedy = "run the worker as a user of its own, on Linux 5.13 or later with Landlock and seccomp"
    return Check("parsers", Verdict.WARNING, detail, remedy)


def judge_tool(tool: str | None) -> Check:
    """What it means that this program, or none, unpacks RAR."""
    if tool is not None:
        return Check("rar", Verdict.OK, f"packed members are opened by {tool}")
    detail = (
        "no unrar, 7zz, 7z or bsdtar that unpacks it: packed members are listed, but not checked or previewed"
    )
    return Check("rar", Verdict.OK, detail)
