"""Which images this machine builds on: the official ones, or stand-ins where those cannot be pulled."""

import re
import subprocess
from dataclasses import dataclass
from pathlib import Path

import stand_ins

ROOT = Path(__file__).parents[2]
# A registry that cannot be reached fails within a second; one that is slow is still on its way.
_PULL_SECONDS = 900


@dataclass(frozen=True, slots=True)
class Bases:
    build: str
    run: str
    postgres: str

    @property
    def stand_ins(self) -> list[str]:
        return [name for name in (self.build, self.run, self.postgres) if name in stand_ins.ALL]


def named() -> Bases:
    """The official ones, as the Dockerfile and the compose file name them."""
    dockerfile = (ROOT / "Dockerfile").read_text()
    compose = (ROOT / "docker-compose.yml").read_text()
    return Bases(
        re.search(r"^ARG BUILD_IMAGE=(\S+)$", dockerfile, re.MULTILINE).group(1),
        re.search(r"^ARG RUN_IMAGE=(\S+)$", dockerfile, re.MULTILINE).group(1),
        re.search(r"\$\{POSTGRES_IMAGE:-([^}]+)\}", compose).group(1),
    )


def find() -> Bases:
    """The official images if they are here or can be pulled, else stand-ins, made now if need be."""
    official = named()
    if not (_is_had(official.build) and _is_had(official.run)):
        stand_ins.make_python()
        official = Bases(stand_ins.FULL, stand_ins.SLIM, official.postgres)
    if not _is_had(official.postgres):
        stand_ins.make_postgres()
        official = Bases(official.build, official.run, stand_ins.POSTGRES)
    return official


def _is_had(image: str) -> bool:
    if stand_ins.has_image(image):
        return True
    pulled = subprocess.run(["docker", "pull", "--quiet", image], capture_output=True, timeout=_PULL_SECONDS)
    return pulled.returncode == 0
