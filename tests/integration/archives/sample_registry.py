"""How samples are declared and built, and the tree of files that most of them hold."""

import io
import os
import random
from dataclasses import dataclass, field
from pathlib import Path

import archive_tools
import kept_samples
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
# What real tools are given: small, because what they make of it is kept in the repository.
SMALL_TREE = {**TREE, "folder/noise.bin": TREE["folder/noise.bin"][:12_000]}
POSTED_AT = 1_709_987_410


@dataclass
class Sample:
    """Files on disk, and what they hold (``entries``; None where names are encrypted)."""

    files: list[Path]
    entries: dict[str, int] | None = field(default_factory=lambda: dict(EXPECTED))
    marks: set[str] = field(default_factory=set)


@dataclass(frozen=True)
class Maker:
    """How to make a sample, and which programs that takes; what these have made is kept."""

    name: str
    format: str
    make: object
    tools: tuple[str, ...] = ()
    fuzzed: bool = True


MAKERS: dict[str, Maker] = {}


def sample(form, *, fuzzed=True):
    """Register a sample that Python makes whenever a test asks for it."""

    def register(make):
        MAKERS[make.__name__] = Maker(make.__name__, form, make, fuzzed=fuzzed)
        return make

    return register


def tool_sample(
    name, form, tools, line, parts="a.*", *, tree=SMALL_TREE, marks=(), changes=(), root="", hidden=False
):
    """Register a sample that real programs make: ``line`` is run by the shell in a folder with the tree.

    ``changes`` says what the archive holds beside the tree and the folders that lead to its files, or, where the
    size is None, what it does not hold; ``root`` how its paths begin; ``hidden`` that it does not tell.
    """

    def make(folder):
        write_tree(folder / "tree", tree)
        archive_tools.run_line(line, tools.split(), folder / "tree", folder / "programs")
        entries = {path: len(data) for path, data in tree.items()}
        # Real tools also store the folders that lead to a file.
        entries |= {"folder/deep/": 0, "folder/deep/er/": 0, **dict(changes)}
        entries = {root + path: size for path, size in entries.items() if size is not None}
        entries |= {root: 0} if root else {}
        # The first volume comes first: it is called .rar before .r00.
        made = sorted(folder.glob(parts), key=lambda file: (file.suffix != ".rar", file.name))
        return Sample(made, None if hidden else entries, set(marks))

    make.line = line
    MAKERS[name] = Maker(name, form, make, tuple(tools.split()))


def build(name, folder):
    """One sample as files on disk: made by Python, or the kept work of a tool."""
    maker = MAKERS[name]
    folder.mkdir(parents=True, exist_ok=True)
    return Sample(*kept_samples.copy(name, folder)) if maker.tools else maker.make(folder)


def make_anew(name, folder):
    """The same sample by the installed tools."""
    folder.mkdir(parents=True, exist_ok=True)
    return MAKERS[name].make(folder)


def write_tree(folder, tree):
    for path, data in tree.items():
        target = folder / path
        if path.endswith("/"):
            target.mkdir(parents=True, exist_ok=True)
        else:
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(data)
    for path in (folder, *folder.rglob("*")):
        path.chmod(0o755 if path.is_dir() else 0o644)
        os.utime(path, (POSTED_AT, POSTED_AT))


def write_files(folder, names, bodies):
    paths = [folder / name for name in names]
    for path, body in zip(paths, bodies, strict=True):
        path.write_bytes(body)
    return paths
