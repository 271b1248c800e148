"""Where the tests' PostgreSQL comes from: the environment, a container, or our own embedded server."""

import asyncio
import contextlib
import os
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass

import asyncpg
from server_folder import keeps_in_memory, server_folder
from sqlalchemy.engine import make_url

from worker.store.embedded import open_cluster

URL_VARIABLE = "TEST_DATABASE_URL"
LABEL_VARIABLE = "FLEET_TEST_DATABASE_LABEL"
COPYING_VARIABLE = "FLEET_TEST_DATABASE_COPYING"
_IMAGE = "postgres:18.6-trixie"
# What `make containers` has made where that cannot be pulled.
_STAND_IN = "archive-fleet-stand-in/postgres:18"
# A registry that cannot be reached says so within seconds; this is for a slow one.
_PULL_SECONDS = 300
# The first version of PostgreSQL in which the number of rounds can be chosen.
_SETS_ROUNDS = 16


@dataclass(frozen=True, slots=True)
class Server:
    url: str
    label: str
    # How its databases are best copied, as part of CREATE DATABASE.
    copying: str = ""


@contextlib.contextmanager
def open_server() -> Iterator[Server]:
    """The server that all processes of this test run share."""
    if url := os.environ.get(URL_VARIABLE):
        yield Server(url, os.environ.get(LABEL_VARIABLE) or f"{URL_VARIABLE} from the environment")
        return
    with contextlib.ExitStack() as stack:
        server = _start(stack)
        # xdist's processes are started later and inherit the environment.
        told = {URL_VARIABLE: server.url, LABEL_VARIABLE: server.label, COPYING_VARIABLE: server.copying}
        os.environ |= told
        try:
            yield server
        finally:
            for name in told:
                del os.environ[name]


def _start(stack: contextlib.ExitStack) -> Server:
    if not _docker_answers():
        return stack.enter_context(_embedded("embedded PostgreSQL"))
    image, reason = choose_image()
    if image is not None:
        try:
            return stack.enter_context(_container(image))
        except Exception as error:  # noqa: BLE001 - whatever keeps the image from running, there is another way
            reason = f"{image} does not run: {_first_line(str(error))}"
    return stack.enter_context(_embedded(f"embedded PostgreSQL (Docker answers, but {reason})"))


def choose_image() -> tuple[str | None, str]:
    """The official image if it is here or can be pulled, else its stand-in if that is here; why not, if neither."""
    refused = _missing(_IMAGE)
    if refused is None:
        return _IMAGE, ""
    if _docker("image", "inspect", _STAND_IN).returncode == 0:
        return _STAND_IN, ""
    return None, f"{_IMAGE} cannot be had: {refused}"


def _missing(image: str) -> str | None:
    """Why this image is not here and cannot be pulled; None if it is."""
    if _docker("image", "inspect", image).returncode == 0:
        return None
    pulled = _docker("pull", "--quiet", image, seconds=_PULL_SECONDS)
    return None if pulled.returncode == 0 else _first_line(pulled.stderr)


def _docker(*arguments: str, seconds: float = 30) -> subprocess.CompletedProcess[str]:
    command = ["docker", *arguments]
    try:
        return subprocess.run(command, capture_output=True, text=True, timeout=seconds)
    except subprocess.TimeoutExpired:
        return subprocess.CompletedProcess(
            command, 1, "", f"docker {arguments[0]}: no answer within {seconds} s"
        )


def _first_line(text: str) -> str:
    return (text.strip().splitlines() or ["no reason given"])[0][:160]


def _docker_answers() -> bool:
    if shutil.which("docker") is None:
        return False
    return _docker("version", "--format", "{{.Server.Version}}", seconds=10).returncode == 0


@contextlib.contextmanager
def _container(image: str) -> Iterator[Server]:
    from testcontainers.community.postgres import PostgresContainer  # noqa: PLC0415 - only where Docker runs
    from testcontainers.core.config import testcontainers_config  # noqa: PLC0415

    # It removes what a killed test run leaves behind. Without its image nobody does, and the tests run all the same.
    if _missing(testcontainers_config.ryuk_image) is not None:
        testcontainers_config.ryuk_disabled = True
    # As many connections as the embedded server takes, and like it without a disk to wait for.
    prepared = PostgresContainer(image, driver=None).with_command("postgres -c max_connections=300")
    with prepared.with_tmpfs_mount("/var/lib/postgresql") as container:
        yield Server(container.get_connection_url(), f"testcontainers {image}", "STRATEGY FILE_COPY")


@contextlib.contextmanager
def _embedded(label: str) -> Iterator[Server]:
    with server_folder("fleet-tests-") as folder, open_cluster(folder) as url:
        asyncio.run(_spare_rounds(url))
        # Without a disk to wait for, copying the files of a template beats writing all of it to the log.
        yield Server(url, label, "STRATEGY FILE_COPY" if keeps_in_memory() else "")


async def _spare_rounds(url: str) -> None:
    """Derive the password's key in one round: thousands of connections would each pay for the usual 4096."""
    connection = await asyncpg.connect(url)
    try:
        if connection.get_server_version().major >= _SETS_ROUNDS:
            await connection.execute("SET scram_iterations = 1")
            await connection.execute(f"ALTER ROLE CURRENT_USER PASSWORD '{make_url(url).password}'")
    finally:
        await connection.close()
