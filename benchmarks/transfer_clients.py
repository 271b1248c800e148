"""The clients that transfers are measured with: each in its own virtual environment and process."""

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
HOME = ROOT / ".worker" / "bench"


@dataclass(frozen=True, slots=True)
class Peer:
    """A client to measure: its script, and what its environment is made of (None: this one)."""

    name: str
    script: str
    requirements: tuple[str, ...] | None = None
    environment: str = ""
    parallel: bool = False
    # Waits for a part before it asks for the next; slow: in small parts at that.
    is_sequential: bool = False
    is_slow: bool = False


PEERS = (
    Peer("fleet", "fleet.py"),
    Peer(
        "kurigram",
        "pyrogram_client.py",
        ("kurigram==2.2.26", "tgcrypto==1.2.5"),
        "kurigram",
        is_sequential=True,
    ),
    Peer(
        "pyrogram",
        "pyrogram_client.py",
        ("pyrogram==2.0.106", "tgcrypto==1.2.5"),
        "pyrogram",
        is_sequential=True,
    ),
    Peer("telethon", "telethon_client.py", ("telethon==1.45.0", "cryptg==0.6.0"), "telethon", is_slow=True),
    Peer(
        "telethon parallel",
        "telethon_client.py",
        ("telethon==1.45.0", "cryptg==0.6.0"),
        "telethon",
        parallel=True,
    ),
)


def python_of(peer: Peer) -> str:
    """The interpreter that has this client; installed from the package index on first use."""
    if peer.requirements is None:
        return sys.executable
    home = HOME / "clients" / peer.environment
    ready = home / ".ready"
    wanted = "\n".join(peer.requirements)
    if not ready.exists() or ready.read_text() != wanted:
        print(f"installing {' '.join(peer.requirements)} …", flush=True)
        subprocess.run([sys.executable, "-m", "venv", "--clear", str(home)], check=True)
        pip = [str(home / "bin" / "python"), "-m", "pip", "--disable-pip-version-check", "install", "--quiet"]
        subprocess.run([*pip, *peer.requirements], check=True)
        ready.write_text(wanted)
    return str(home / "bin" / "python")


class Client:
    """A client process that is told what to do."""

    def __init__(self, peer: Peer, facts: dict[str, Any]) -> None:
        self.peer = peer
        self._out = HOME / "out" / f"{peer.name.replace(' ', '-')}.zip"
        self._out.parent.mkdir(parents=True, exist_ok=True)
        script = ROOT / "benchmarks" / "clients" / peer.script
        self._errors = (HOME / f"{peer.name.replace(' ', '-')}.log").open("w")
        self._process = subprocess.Popen(
            [python_of(peer), str(script), json.dumps({**facts, "parallel": peer.parallel})],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            text=True,
            env={**os.environ, "PYTHONPATH": str(ROOT) if peer.requirements is None else ""},
        )
        self._hear()

    def do(self, operation: str) -> dict[str, Any]:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps({"do": operation, "out": str(self._out)}) + "\n")
        self._process.stdin.flush()
        return self._hear()

    def _hear(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            sys.exit(f"{self.peer.name} ended by itself; see {self._errors.name}")
        return json.loads(line)

    def close(self) -> None:
        self._process.stdin.close()
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._errors.close()
