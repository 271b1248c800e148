"""Where the tests' PostgreSQL comes from: the environment, a container, or our own embedded server."""

import contextlib
import os
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass

from server_folder import keeps_in_memory, server_folder

from worker.store.embedded import open_cluster

URL_VARIABLE = "TEST_DATABASE_URL"
LABEL_VARIABLE = "FLEET_TEST_DATABASE_LABEL"
COPYING_VARIABLE = "FLEET_TEST_DATABASE_COPYING"
_IMAGE = "postgres:17"


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
    try:
        return stack.enter_context(_container())
    except Exception as error:  # noqa: BLE001 - whatever keeps the image from running, there is another way
        reason = str(error).splitlines()[0][:120]
        return stack.enter_context(
            _embedded(f"embedded PostgreSQL (Docker answers, but {_IMAGE} does not run: {reason})")
        )


def _docker_answers() -> bool:
    docker = shutil.which("docker")
    if docker is None:
        return False
    with contextlib.suppress(subprocess.TimeoutExpired):
        answer = subprocess.run(
            [docker, "version", "--format", "{{.Server.Version}}"], capture_output=True, timeout=10
        )
        return answer.returncode == 0
    return False


@contextlib.contextmanager
def _container() -> Iterator[Server]:
    from testcontainers.community.postgres import PostgresContainer  # noqa: PLC0415 - only where Docker runs

    with PostgresContainer(_IMAGE, driver=None) as container:
        yield Server(container.get_connection_url(), f"testcontainers {_IMAGE}")


@contextlib.contextmanager
def _embedded(label: str) -> Iterator[Server]:
    with server_folder("fleet-tests-") as folder, open_cluster(folder) as url:
        # Without a disk to wait for, copying the files of a template beats writing all of it to the log.
        yield Server(url, label, "STRATEGY FILE_COPY" if keeps_in_memory() else "")
