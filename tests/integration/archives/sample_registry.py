"""How samples are declared and built, and the tree of files that most of them hold."""

import io
import os
import random
import shutil
import subprocess
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from PIL import Image

GIB = 1024**3


def _picture():
    out = io.BytesIO()
    Image.new("RGB", (640, 480), (200, 30, 60)).save(out, "JPEG")
    return out.getvalue()


TREE = {
    "readme.txt": b"hello\n" * 40,
    "empty.bin": b"",
    "folder/": b"",
    "folder/noise.bin": random.Random(7).randbytes(150_000),
    "folder/Grüße 写真.txt": "ünïcödé".encode() * 30,
    "folder/deep/er/cover.jpg": _picture(),
}
EXPECTED = {path: len(data) for path, data in TREE.items()}


@dataclass
class Sample:
    """Files on disk, and what they hold (``entries``; None where names are encrypted)."""

    files: list[Path]
    entries: dict[str, int] | None = field(default_factory=lambda: dict(EXPECTED))
    marks: set[str] = field(default_factory=set)


@dataclass(frozen=True)
class Maker:
    """How to make a sample, and what it needs."""

    name: str
    format: str
    make: object
    tools: tuple[str, ...]
    fuzzed: bool


MAKERS: dict[str, Maker] = {}


def sample(form, *tools, fuzzed=True):
    """Register a sample."""

    def register(make):
        name = make.__name__
        MAKERS[name] = Maker(name, form, make, tools, fuzzed)
        return make

    return register


def build(name, folder):
    """Make one sample, or skip the test with the reason."""
    maker = MAKERS[name]
    for tool in maker.tools:
        if shutil.which(tool) is None:
            pytest.skip(f"{tool} is not installed")
    folder.mkdir(parents=True, exist_ok=True)
    return maker.make(folder)


def write_tree(folder, tree=None):
    for path, data in (TREE if tree is None else tree).items():
        target = folder / path
        if path.endswith("/"):
            target.mkdir(parents=True, exist_ok=True)
        else:
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(data)
    return folder


def tool_environment():
    """Names in UTF-8, and programs where ``shutil.which`` has found them."""
    return {"LC_ALL": "C.UTF-8", "PATH": os.environ["PATH"]}


def run_tool(folder, *command):
    tree = write_tree(folder / "tree")
    done = subprocess.run(
        command,
        cwd=tree,
        capture_output=True,
        check=False,
        env=tool_environment(),
    )
    assert done.returncode == 0, done.stderr or done.stdout
    return folder


def with_folders(sample_files, *, marks=()):
    """Real tools also store the folders that lead to a file."""
    entries = {**EXPECTED, "folder/deep/": 0, "folder/deep/er/": 0}
    return Sample(sorted(sample_files), entries, set(marks))


def write_files(folder, names, bodies):
    paths = [folder / name for name in names]
    for path, body in zip(paths, bodies, strict=True):
        path.write_bytes(body)
    return paths
