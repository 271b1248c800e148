"""Docker compose as the tests use it: the first look's files under a project name of their own."""

import json
import os
import shutil
import subprocess

import stand_ins
from base_images import ROOT, Bases

PROJECT = "archive-fleet-proof"
IMAGE = f"{PROJECT}:local"
FILES = ("docker-compose.yml", "docker-compose.demo.yml")


def program() -> list[str]:
    """Compose 2: the engine's plugin, a program of its own, or Debian's package taken out of its archive."""
    for command in (["docker", "compose"], ["docker-compose"], [str(_unpacked())]):
        if shutil.which(command[0]) and _is_version_2(command):
            return command
    _unpack()
    return [str(_unpacked())]


def _is_version_2(command: list[str]) -> bool:
    said = subprocess.run([*command, "version", "--short"], capture_output=True, text=True)
    return said.returncode == 0 and said.stdout.strip().removeprefix("v").startswith(("2", "3", "4", "5"))


def _unpacked():
    return stand_ins.cache() / "docker-compose"


def _unpack() -> None:
    """Nothing is installed: the program alone is taken from the package, in a container that has apt."""
    stand_ins.make_debian()
    script = (
        "cd /tmp && apt-get -qq update >&2 && apt-get -qq download docker-compose >&2"
        " && dpkg-deb --fsys-tarfile docker-compose_*.deb"
        " | tar -xO ./usr/libexec/docker/cli-plugins/docker-compose"
    )
    part = _unpacked().with_suffix(".part")
    with part.open("wb") as file:
        subprocess.run(
            ["docker", "run", "--rm", stand_ins.DEBIAN, "sh", "-c", script], stdout=file, check=True
        )
    part.chmod(0o755)
    part.rename(_unpacked())


class ComposeError(Exception):
    """A command failed; the message is what it said."""


class Compose:
    """One project, with everything that belongs to it."""

    def __init__(self, bases: Bases) -> None:
        files = [word for file in FILES for word in ("--file", str(ROOT / file))]
        self._command = [*program(), "--project-name", PROJECT, "--ansi", "never", *files]
        # Whatever the shell or .env say of a real fleet is not for this one.
        kept = {
            name: value for name, value in os.environ.items() if not name.startswith(("WORKER_", "COMPOSE_"))
        }
        self._env = kept | {"ARCHIVE_FLEET_DEMO": PROJECT, "POSTGRES_IMAGE": bases.postgres}

    def run(self, *arguments: str) -> str:
        """Run a command to its end and return what it says on stdout."""
        done = subprocess.run([*self._command, *arguments], capture_output=True, text=True, env=self._env)
        if done.returncode != 0:
            raise ComposeError(f"{' '.join(arguments[:3])} failed:\n{(done.stdout + done.stderr)[-3000:]}")
        return done.stdout

    def containers(self, service: str) -> list[str]:
        """The ids of a service's containers, running or not."""
        return self.run("ps", "--all", "--quiet", service).split()

    def query(self, sql: str) -> list[list[str]]:
        """Ask the fleet's database as the person who runs it would."""
        answer = self.run(
            *("exec", "-T", "postgres", "psql", "-U", "fleet", "-d", "fleet", "-At", "-F", "\t", "-c", sql)
        )
        return [line.split("\t") for line in answer.splitlines()]

    def ledger(self, command: str) -> list[dict]:
        """Ask the loopback Telegram's own ledger through its admin door."""
        script = (
            "import json; from pathlib import Path; from worker.sandbox.admin_client import SandboxAdmin;"
            "token = Path('/var/lib/archive-fleet/telegram/admin.token');"
            f"print(json.dumps(SandboxAdmin('telegram', 4431, token).do_now({command!r})))"
        )
        return json.loads(self.run("exec", "-T", "telegram", "python", "-c", script))

    def down(self) -> None:
        self.run("down", "--volumes", "--remove-orphans", "--timeout", "100")


def inspect(container: str) -> dict:
    said = subprocess.run(["docker", "inspect", container], capture_output=True, text=True, check=True)
    return json.loads(said.stdout)[0]


def left_behind() -> list[str]:
    """Containers, networks and volumes that still carry the project's label."""
    label = f"label=com.docker.compose.project={PROJECT}"
    found = []
    for kind, flags in (("container", ["--all"]), ("network", []), ("volume", [])):
        listed = subprocess.run(
            ["docker", kind, "ls", *flags, "--quiet", "--filter", label],
            capture_output=True,
            text=True,
            check=True,
        )
        found += [f"{kind} {name}" for name in listed.stdout.split()]
    return found
