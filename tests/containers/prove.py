"""Runs the whole fleet in containers, kills a worker in the middle of its work, and asks the ledger.

`make containers`. Everything is taken down at the end, however it ends; the exit code tells.
"""

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator

import base_images
import compose
import stand_ins
from base_images import ROOT, Bases
from compose import Compose, ComposeError, inspect, left_behind
from connection_overlaps import overlaps

_WORK_SECONDS = 300
# Somebody owns this worker's claims, and has begun to send: a kill leaves something to be found.
_AT_WORK = """
    SELECT w.host, count(*) FROM uploads u JOIN accounts a ON a.id = u.account_id JOIN workers w ON w.id = a.worker_id
    WHERE u.state = 'open' AND w.stopped_at IS NULL AND (SELECT count(*) FROM packages) >= 2
    GROUP BY w.host ORDER BY count(*) DESC, w.host
"""
_UNFINISHED = """
    SELECT 'open uploads', count(*) FROM uploads WHERE state = 'open'
    UNION ALL SELECT 'sets under way', count(*) FROM archive_sets WHERE state IN ('ready', 'claimed', 'published')
    UNION ALL SELECT 'disk reservations', count(*) FROM disk_reservations
"""


class PromiseBrokenError(Exception):
    """The fleet did not keep a promise; the message says which."""


def main() -> int:
    started = time.monotonic()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    # A shell that starts this in the background has it ignored.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        bases = base_images.find()
        _say_what_it_stands_on(bases)
        _build(bases)
        with _project(bases) as project:
            _prove(project)
    except (PromiseBrokenError, ComposeError, stand_ins.StandInError) as error:
        print(f"containers: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("containers: interrupted; everything was taken down", file=sys.stderr)
        return 130
    if remains := left_behind():
        print(f"containers: left behind: {', '.join(remains)}", file=sys.stderr)
        return 1
    print(
        f"Everything was taken down: no container, network or volume is left. {time.monotonic() - started:.0f} s."
    )
    return 0


def _say_what_it_stands_on(bases: Bases) -> None:
    if bases.stand_ins:
        print(
            "The official base images cannot be pulled here. STAND-INS made of Debian's packages take their places:"
            f" {', '.join(bases.stand_ins)}.",
            flush=True,
        )
    else:
        print(f"Base images: {bases.build}, {bases.run}, {bases.postgres}.", flush=True)


def _build(bases: Bases) -> None:
    began = time.monotonic()
    arguments = ("--build-arg", f"BUILD_IMAGE={bases.build}", "--build-arg", f"RUN_IMAGE={bases.run}")
    done = subprocess.run(
        ["docker", "build", "--tag", compose.IMAGE, *arguments, str(ROOT)], capture_output=True, text=True
    )
    if done.returncode != 0:
        raise PromiseBrokenError(f"the image does not build:\n{done.stdout[-3000:]}{done.stderr[-1000:]}")
    print(f"The image was built in {time.monotonic() - began:.0f} s.", flush=True)


@contextlib.contextmanager
def _project(bases: Bases) -> Iterator[Compose]:
    """Everything that is started in the block is gone after it, on failure and on Ctrl-C as well."""
    project = Compose(bases)
    # What a run left that was killed itself.
    project.down()
    try:
        yield project
    except (PromiseBrokenError, ComposeError):
        print(project.run("logs", "--no-color", "--tail", "40")[-12_000:], file=sys.stderr)
        raise
    finally:
        # A second Ctrl-C would leave half of it behind.
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, signal.SIG_IGN)
        project.down()
        subprocess.run(["docker", "rmi", "--force", compose.IMAGE], capture_output=True)


def _prove(project: Compose) -> None:
    began = time.monotonic()
    project.run("up", "--detach", "--no-build")
    workers = project.containers("worker")
    print(
        f"PostgreSQL, migration, loopback Telegram and {len(workers)} workers are up after {_since(began)}.",
        flush=True,
    )
    _check_confinement(workers[0])
    began = time.monotonic()
    killed, uploads = _kill_one_at_work(project, workers)
    print(f"A worker was killed (SIGKILL) with {uploads} begun; the other goes on alone.", flush=True)
    said = _until_watched(project)
    print(f"Everything was published {_since(began)} after the start of the workers:\n\n{said}", flush=True)
    subprocess.run(["docker", "start", killed], check=True, capture_output=True)
    _check_what_is_left(project)
    _check_operation(project)
    _stop_gracefully(project, workers)


def _kill_one_at_work(project: Compose, workers: list[str]) -> tuple[str, str]:
    """Kill the worker that has begun the most uploads; its id, and how many they were."""
    by_host = {inspect(worker)["Config"]["Hostname"]: worker for worker in workers}
    deadline = time.monotonic() + _WORK_SECONDS
    while time.monotonic() < deadline:
        for host, _ in project.query(_AT_WORK):
            subprocess.run(
                ["docker", "kill", "--signal", "KILL", by_host[host]], check=True, capture_output=True
            )
            # What it had finished between the question and its end is not in the middle of anything.
            left = project.query(
                f"SELECT count(*) FROM uploads u JOIN accounts a ON a.id = u.account_id JOIN workers w ON w.id = a.worker_id"
                f" WHERE u.state = 'open' AND w.host = '{host}'"
            )[0][0]
            if left == "0":
                raise PromiseBrokenError(
                    "the worker had just finished its uploads when it was killed; run this again"
                )
            return by_host[host], f"{left} uploads" if left != "1" else "1 upload"
    raise PromiseBrokenError("no worker was seen at work")


def _until_watched(project: Compose) -> str:
    (watch,) = project.containers("watch")
    ended = subprocess.run(
        ["docker", "wait", watch], capture_output=True, text=True, check=True, timeout=1200
    )
    if ended.stdout.strip() != "0":
        raise PromiseBrokenError("the ledger disagrees, or the fleet did not finish")
    said = subprocess.run(["docker", "logs", watch], capture_output=True, text=True, check=True).stdout
    return "\n".join(line.rstrip() for line in said.splitlines())


def _check_what_is_left(project: Compose) -> None:
    """What the table of the demo does not show: connections, flood waits, and what is unfinished."""
    connections = project.ledger("connections")
    if found := overlaps(connections):
        raise PromiseBrokenError(f"one key was connected from two containers at once: {found[0]}")
    if early := [call for call in project.ledger("calls") if call["early"]]:
        raise PromiseBrokenError(f"a flood wait was not kept: {early[0]}")
    _until(
        lambda: all(count == "0" for _, count in project.query(_UNFINISHED)), "something is left unfinished"
    )
    said = project.run("exec", "-T", "worker", "worker", "verify")
    print(
        f"Connections: {len(connections)}, none of one key from two containers at once. {said.strip()}",
        flush=True,
    )


def _check_confinement(worker: str) -> None:
    script = (
        "id -u; sed -n 's/^CapEff:[[:space:]]*//p; s/^NoNewPrivs:[[:space:]]*//p' /proc/self/status;"
        " touch /opt/worker/x 2>/dev/null && echo writable || echo sealed;"
        " touch /var/lib/archive-fleet/x && rm /var/lib/archive-fleet/x && echo kept"
    )
    said = subprocess.run(["docker", "exec", worker, "sh", "-c", script], capture_output=True, text=True)
    if said.stdout.split() != ["10001", "0000000000000000", "1", "sealed", "kept"]:
        raise PromiseBrokenError(
            f"a worker is less confined than promised: {said.stdout.split()} {said.stderr}"
        )


def _check_operation(project: Compose) -> None:
    """Every container that should run is healthy, the killed one again too, and status answers."""
    running = [each for service in ("postgres", "telegram", "worker") for each in project.containers(service)]

    def healthy() -> bool:
        return all(inspect(each)["State"].get("Health", {}).get("Status") == "healthy" for each in running)

    _until(healthy, "not every container became healthy")
    if "account" not in project.run("exec", "-T", "worker", "worker", "status"):
        raise PromiseBrokenError("worker status says nothing of the accounts")


def _stop_gracefully(project: Compose, workers: list[str]) -> None:
    began = time.monotonic()
    project.run("stop", "worker")
    codes = sorted(inspect(worker)["State"]["ExitCode"] for worker in workers)
    if any(codes):
        raise PromiseBrokenError(f"docker compose stop: the workers ended with {codes} instead of 0")
    print(
        f"The killed worker came back and was healthy; docker compose stop ended both workers in {_since(began)}.",
        flush=True,
    )


def _until(holds, otherwise: str) -> None:
    deadline = time.monotonic() + _WORK_SECONDS
    while not holds():
        if time.monotonic() > deadline:
            raise PromiseBrokenError(otherwise)
        time.sleep(1)


def _since(began: float) -> str:
    return f"{time.monotonic() - began:.0f} s"


if __name__ == "__main__":
    os.chdir(ROOT)
    sys.exit(main())
