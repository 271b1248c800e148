"""Archives of every format and scheme, made when a test asks for them.

Samples marked with a tool come from the real program; the rest come from Python libraries and from
``rar_writer``, so that every format is covered on a machine without those programs.
"""

import bz2
import gzip
import io
import lzma
import random
import shutil
import struct
import subprocess
import sys
import tarfile
import zipfile
import zlib
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path

import py7zr
import pytest
import rar_writer
from PIL import Image

zstd = import_module("backports.zstd" if sys.version_info < (3, 14) else "compression.zstd")

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
    protected: bool


MAKERS: dict[str, Maker] = {}


def sample(form, *tools, fuzzed=True, protected=True):
    """Register a sample. ``protected``: every byte that the listing depends on is under some checksum."""

    def register(make):
        name = make.__name__
        MAKERS[name] = Maker(name, form, make, tools, fuzzed, protected)
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


def _run(folder, *command):
    tree = write_tree(folder / "tree")
    done = subprocess.run(
        command,
        cwd=tree,
        capture_output=True,
        check=False,
        env={"LC_ALL": "C.UTF-8", "PATH": "/usr/bin:/bin:/usr/local/bin"},
    )
    assert done.returncode == 0, done.stderr or done.stdout
    return folder


def _with_folders(sample_files, *, marks=()):
    """Real tools also store the folders that lead to a file."""
    entries = {**EXPECTED, "folder/deep/": 0, "folder/deep/er/": 0}
    return Sample(sorted(sample_files), entries, set(marks))


def _write(folder, names, bodies):
    paths = [folder / name for name in names]
    for path, body in zip(paths, bodies, strict=True):
        path.write_bytes(body)
    return paths


def zip_bytes(tree=None, compression=zipfile.ZIP_DEFLATED, comment=b""):
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", compression) as archive:
        for path, data in (TREE if tree is None else tree).items():
            archive.writestr(zipfile.ZipInfo(path, (2024, 3, 9, 12, 30, 10)), data, compression)
        archive.comment = comment
    return out.getvalue()


@sample("zip")
def zip_deflated(folder):
    return Sample(_write(folder, ["a.zip"], [zip_bytes()]))


@sample("zip")
def zip_stored_with_comment(folder):
    return Sample(
        _write(folder, ["Ünï.ZIP"], [zip_bytes(compression=zipfile.ZIP_STORED, comment=b"a comment")])
    )


@sample("zip")
def zip_bzip2_and_lzma(folder):
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        archive.writestr("b.txt", b"b" * 1000, zipfile.ZIP_BZIP2)
        archive.writestr("l.txt", b"l" * 1000, zipfile.ZIP_LZMA)
    return Sample(_write(folder, ["a.zip"], [out.getvalue()]), {"b.txt": 1000, "l.txt": 1000})


@sample("zip")
def zip_streamed(folder):
    class Unseekable(io.RawIOBase):
        def __init__(self):
            super().__init__()
            self.body = bytearray()

        def writable(self):
            return True

        def write(self, data):
            self.body += data
            return len(data)

    out = Unseekable()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for path, data in TREE.items():
            archive.writestr(path, data)
    return Sample(_write(folder, ["a.zip"], [bytes(out.body)]))


@sample("zip")
def zip_empty(folder):
    return Sample(_write(folder, ["a.zip"], [zip_bytes({})]), {}, {"empty"})


@sample("zip cp437", protected=False)
def zip_cp437(folder):
    body = zip_bytes({"caf_.txt": b"x"}).replace(b"caf_.txt", b"caf\x82.txt")
    at = body.index(b"PK\x01\x02")
    return Sample(_write(folder, ["a.zip"], [body[: at + 5] + b"\0" + body[at + 6 :]]), {"café.txt": 1})


@sample("zip", "zip")
def zip_tool(folder):
    return _with_folders([_run(folder, "zip", "-q", "-r", "../a.zip", ".") / "a.zip"])


@sample("zip", "zip")
def zip_tool_encrypted(folder):
    _run(folder, "zip", "-q", "-r", "-P", "secret", "../a.zip", ".")
    return _with_folders([folder / "a.zip"], marks={"encrypted"})


@sample("zip", "7zz")
def zip_sevenzip_aes(folder):
    _run(folder, "7zz", "a", "-tzip", "-psecret", "-mem=AES256", "../a.zip", ".")
    return _with_folders([folder / "a.zip"], marks={"encrypted"})


@sample("zip64", fuzzed=False)
def zip64_sparse(folder):
    size = 5 * GIB
    path = folder / "a.zip"
    extra = struct.pack("<2H2Q", 1, 16, size, size)
    local = struct.pack("<4s5H3L2H", b"PK\3\4", 45, 0, 0, 0, 0x5821, 0, 0xFFFFFFFF, 0xFFFFFFFF, 3, len(extra))
    wide = struct.pack("<2H3Q", 1, 24, size, size, 0)
    fields = (45, 45, 0, 0, 0, 0x5821, 0, 0xFFFFFFFF, 0xFFFFFFFF, 3, len(wide), 0, 0, 0, 0, 0xFFFFFFFF)
    record = struct.pack("<4s6H3L5H2L", b"PK\1\2", *fields) + b"big" + wide
    with path.open("wb") as file:
        file.write(local + b"big" + extra)
        start = file.seek(size, 1)
        file.write(record)
        end = file.tell()
        file.write(struct.pack("<4sQ2H2L4Q", b"PK\6\6", 44, 45, 45, 0, 0, 1, 1, len(record), start))
        file.write(struct.pack("<4sLQL", b"PK\6\7", 0, end, 1))
        file.write(struct.pack("<4s4H2LH", b"PK\5\6", 0, 0, 0xFFFF, 0xFFFF, 0xFFFFFFFF, 0xFFFFFFFF, 0))
    return Sample([path], {"big": size})


@sample("zip64")
def zip64_forced(folder):
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for path, data in TREE.items():
            if path.endswith("/"):
                archive.writestr(path, b"")
                continue
            with archive.open(path, "w", force_zip64=True) as member:
                member.write(data)
    return Sample(_write(folder, ["a.zip"], [out.getvalue()]))


@sample("zip in slices")
def zip_numbered(folder):
    body = zip_bytes()
    slices = [body[at : at + 50_000] for at in range(0, len(body), 50_000)]
    return Sample(_write(folder, [f"a.zip.{n:03d}" for n in range(1, len(slices) + 1)], slices))


@sample("zip in slices", "7zz")
def zip_numbered_tool(folder):
    _run(folder, "7zz", "a", "-v60k", "../a.zip", ".")
    return _with_folders(folder.glob("a.zip.*"))


@sample("spanned zip", "zip")
def zip_spanned_tool(folder):
    _run(folder, "zip", "-q", "-r", "-s", "64k", "../a.zip", ".")
    return _with_folders([*folder.glob("a.z0*"), folder / "a.zip"])


@sample("spanned zip64", "zip")
def zip64_spanned_tool(folder):
    _run(folder, "zip", "-q", "-r", "-fz", "-s", "64k", "../a.zip", ".")
    return _with_folders([*folder.glob("a.z0*"), folder / "a.zip"])


@sample("spanned zip")
def zip_spanned(folder):
    return Sample(_write(folder, ["a.z01", "a.z02", "a.zip"], spanned_zip(TREE, 80_000)))


def spanned_zip(tree, room):
    """Three disks: headers carry the disk and the offset on it, the end record the number of disks."""
    disks, records = [bytearray(b"PK\7\x08")], []
    for path, data in tree.items():
        if len(disks[-1]) > room and len(disks) < 3:
            disks.append(bytearray())
        name, crc = path.encode(), zlib.crc32(data)
        where = (len(disks) - 1, len(disks[-1]))
        common = (20, 0x800, 0, 0x6000, 0x5869, crc, len(data), len(data), len(name), 0)
        rest = struct.pack("<4s5H3L2H", b"PK\3\4", *common) + name + data
        records.append(
            struct.pack("<4s6H3L5H2L", b"PK\1\2", 0x31E, *common, 0, where[0], 0, 0, where[1]) + name
        )  # fmt: skip
        while rest:
            space = max(room - len(disks[-1]), 0) if len(disks) < 3 else len(rest)
            if space < 30 and len(disks) < 3:
                disks.append(bytearray())
                continue
            disks[-1] += rest[:space]
            rest = rest[space:]
    while len(disks) < 3:
        disks.append(bytearray())
    directory = b"".join(records)
    offset = len(disks[-1])
    end = struct.pack("<4s4H2LH", b"PK\5\6", 2, 2, len(records), len(records), len(directory), offset, 0)
    disks[-1] += directory + end
    return [bytes(disk) for disk in disks]


@sample("7z")
def sevenzip_python(folder):
    with py7zr.SevenZipFile(folder / "a.7z", "w") as archive:
        for path, data in TREE.items():
            if not path.endswith("/"):
                archive.writestr(data, path)
    return Sample(
        [folder / "a.7z"], {path: size for path, size in EXPECTED.items() if not path.endswith("/")}
    )


@sample("7z")
def sevenzip_python_encrypted_names(folder):
    with py7zr.SevenZipFile(folder / "a.7z", "w", password="secret", header_encryption=True) as archive:
        archive.writestr(b"x" * 500, "hidden.txt")
    return Sample([folder / "a.7z"], None, {"encrypted", "encrypted-names"})


@sample("7z in slices")
def sevenzip_numbered(folder):
    body = sevenzip_python(folder).files[0].read_bytes()
    slices = [body[at : at + 40_000] for at in range(0, len(body), 40_000)]
    files = _write(folder, [f"b.7z.{n:03d}" for n in range(1, len(slices) + 1)], slices)
    return Sample(files, {path: size for path, size in EXPECTED.items() if not path.endswith("/")})


@sample("7z", "7zz")
def sevenzip_tool_solid(folder):
    return _with_folders([_run(folder, "7zz", "a", "-ms=on", "../a.7z", ".") / "a.7z"])


@sample("7z", "7zz")
def sevenzip_tool_not_solid_ppmd(folder):
    return _with_folders([_run(folder, "7zz", "a", "-ms=off", "-m0=PPMd", "../a.7z", ".") / "a.7z"])


@sample("7z", "7zz")
def sevenzip_tool_encrypted(folder):
    _run(folder, "7zz", "a", "-psecret", "../a.7z", ".")
    return _with_folders([folder / "a.7z"], marks={"encrypted"})


@sample("7z", "7zz")
def sevenzip_tool_encrypted_names(folder):
    _run(folder, "7zz", "a", "-psecret", "-mhe=on", "../a.7z", ".")
    return Sample([folder / "a.7z"], None, {"encrypted", "encrypted-names"})


@sample("7z", "7zz")
def sevenzip_tool_empty(folder):
    _run(folder, "7zz", "a", "../a.7z", "readme.txt")
    _run(folder, "7zz", "d", "../a.7z", "readme.txt")
    return Sample([folder / "a.7z"], {}, {"empty"})


@sample("7z in slices", "7zz")
def sevenzip_numbered_tool(folder):
    _run(folder, "7zz", "a", "-v50k", "../a.7z", ".")
    return _with_folders(folder.glob("a.7z.*"))


@sample("rar4")
def rar4_single(folder):
    return Sample(_write(folder, ["a.rar"], rar_writer.rar4(TREE)))


@sample("rar4")
def rar4_encrypted(folder):
    return Sample(_write(folder, ["a.rar"], rar_writer.rar4(TREE, encrypted=True)), marks={"encrypted"})


@sample("rar4")
def rar4_encrypted_names(folder):
    files = _write(folder, ["a.rar"], [rar_writer.rar4_encrypted_names()])
    return Sample(files, None, {"encrypted", "encrypted-names"})


@sample("rar4")
def rar4_empty(folder):
    return Sample(_write(folder, ["a.rar"], rar_writer.rar4({})), {}, {"empty"})


@sample("rar4 volumes")
def rar4_legacy_volumes(folder):
    bodies = rar_writer.rar4(TREE, 60_000)
    return Sample(_write(folder, ["a.rar", *(f"a.r{n:02d}" for n in range(len(bodies) - 1))], bodies))


@sample("rar4 volumes")
def rar4_part_volumes(folder):
    bodies = rar_writer.rar4(TREE, 60_000, new_names=True)
    return Sample(_write(folder, [f"A.Part{n}.RAR" for n in range(1, len(bodies) + 1)], bodies))


@sample("rar4", fuzzed=False)
def rar4_sparse(folder):
    return _sparse_rar(
        folder, rar_writer.MAGIC4 + rar_writer._block4(0x73, 0, bytes(6)), rar_writer.file4, rar_writer.end4()
    )


@sample("rar5")
def rar5_single(folder):
    return Sample(_write(folder, ["a.rar"], rar_writer.rar5(TREE)))


@sample("rar5 volumes")
def rar5_part_volumes(folder):
    bodies = rar_writer.rar5(TREE, 60_000)
    return Sample(_write(folder, [f"a.part{n:02d}.rar" for n in range(1, len(bodies) + 1)], bodies))


@sample("rar in slices")
def rar5_numbered(folder):
    body = rar_writer.rar5(TREE)[0]
    slices = [body[at : at + 50_000] for at in range(0, len(body), 50_000)]
    return Sample(_write(folder, [f"a.rar.{n:03d}" for n in range(1, len(slices) + 1)], slices))


@sample("rar5", fuzzed=False)
def rar5_sparse(folder):
    def file(piece, packed):
        return rar_writer.file5(piece, data_size=packed)

    return _sparse_rar(folder, rar_writer.MAGIC5 + rar_writer.main5(), file, rar_writer.end5())


def _sparse_rar(folder, start, make_file, end):
    size = 5 * GIB
    piece = rar_writer.Piece("big", b"", size, 0)
    with (folder / "a.rar").open("wb") as file:
        file.write(start + make_file(piece, packed=size))
        file.seek(size, 1)
        file.write(end)
    return Sample([folder / "a.rar"], {"big": size})


@sample("rar5", "rar")
def rar5_tool_solid(folder):
    return _with_folders([_run(folder, "rar", "a", "-s", "-r", "../a.rar", ".") / "a.rar"])


@sample("rar5", "rar")
def rar5_tool_encrypted(folder):
    _run(folder, "rar", "a", "-psecret", "-r", "../a.rar", ".")
    return _with_folders([folder / "a.rar"], marks={"encrypted"})


@sample("rar5", "rar")
def rar5_tool_encrypted_names(folder):
    _run(folder, "rar", "a", "-hpsecret", "-r", "../a.rar", ".")
    return Sample([folder / "a.rar"], None, {"encrypted", "encrypted-names"})


@sample("rar5 volumes", "rar")
def rar5_tool_volumes(folder):
    _run(folder, "rar", "a", "-v60k", "-r", "../a.rar", ".")
    return _with_folders(folder.glob("a.part*.rar"))


@sample("rar5 volumes", "rar")
def rar5_tool_volumes_encrypted_names(folder):
    _run(folder, "rar", "a", "-hpsecret", "-v60k", "-r", "../a.rar", ".")
    return Sample(sorted(folder.glob("a.part*.rar")), None, {"encrypted", "encrypted-names"})


def tar_bytes(tree=None, form=tarfile.GNU_FORMAT):
    out = io.BytesIO()
    with tarfile.TarFile(fileobj=out, mode="w", format=form) as archive:
        for path, data in (TREE if tree is None else tree).items():
            info = tarfile.TarInfo(path.rstrip("/"))
            info.type = tarfile.DIRTYPE if path.endswith("/") else tarfile.REGTYPE
            info.size, info.mtime = len(data), 1_700_000_000
            archive.addfile(info, io.BytesIO(data))
    return out.getvalue()


@sample("tar")
def tar_gnu(folder):
    return Sample(_write(folder, ["a.tar"], [tar_bytes()]))


@sample("tar", protected=False)
def tar_pax(folder):
    return Sample(_write(folder, ["a.tar"], [tar_bytes(form=tarfile.PAX_FORMAT)]))


@sample("tar")
def tar_empty(folder):
    return Sample(_write(folder, ["a.tar"], [tar_bytes({})]), {}, {"empty"})


@sample("tar", fuzzed=False)
def tar_sparse(folder):
    info = tarfile.TarInfo("big")
    info.size = 9 * GIB
    with (folder / "a.tar").open("wb") as file:
        file.write(info.tobuf(tarfile.GNU_FORMAT))
        file.truncate(512 + info.size + 1024)
    return Sample([folder / "a.tar"], {"big": info.size})


@sample("tar.gz")
def tar_gz(folder):
    return Sample(_write(folder, ["a.tar.gz"], [gzip.compress(tar_bytes())]))


@sample("tar.gz")
def tgz(folder):
    return Sample(_write(folder, ["a.TGZ"], [gzip.compress(tar_bytes(form=tarfile.PAX_FORMAT))]))


@sample("tar.bz2")
def tar_bz2(folder):
    return Sample(_write(folder, ["a.tar.bz2"], [bz2.compress(tar_bytes())]))


@sample("tar.xz")
def tar_xz(folder):
    return Sample(_write(folder, ["a.tar.xz"], [lzma.compress(tar_bytes())]))


@sample("tar.zst")
def tar_zst(folder):
    options = {zstd.CompressionParameter.checksum_flag: 1}
    return Sample(_write(folder, ["a.tar.zst"], [zstd.compress(tar_bytes(), options=options)]))


@sample("tar.zst", "bsdtar", protected=False)
def tar_zst_tool(folder):
    _run(folder, "bsdtar", "-c", "--zstd", "-f", "../a.tar.zst", "readme.txt", "empty.bin", "folder")
    return _with_folders([folder / "a.tar.zst"])
