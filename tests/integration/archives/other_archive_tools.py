"""What other programs and libraries say is in an archive: pairs of path (no closing slash) and size."""

import io
import re
import shutil
import subprocess
import tarfile
import zipfile

import py7zr
import rarfile
from archive_samples import zstd
from sample_registry import tool_environment


def listings(form, parts, folder):
    """One listing per library that can read this kind, and per program that also is installed.

    A program that broke off, as libarchive does on some solid RARs, gives a :class:`Partial` one.
    """
    paths = [folder / part for part in parts]
    found = _libraries(form, paths)
    if len(parts) == 1 and form.startswith("zip") and found["zipfile"] and shutil.which("unzip"):
        found["unzip -Z"] = _unzip(paths[0])
    if form == "zip cp437":
        return found  # the programs below show such names as raw bytes
    if not form.startswith(("rar", "tar.")) and shutil.which("7zz"):
        found["7z l"] = _sevenzip(paths[-1] if form.startswith("spanned") else paths[0])
    if len(parts) == 1 and form != "7z" and shutil.which("bsdtar"):
        found["bsdtar -tv"] = _bsdtar(paths[0])
    if form.startswith("rar") and "slices" not in form and shutil.which("unrar"):
        found["unrar lt"] = _unrar(paths[0])
    return found


class Partial(list):
    """What a program listed before it gave up."""


def _libraries(form, paths):
    source = paths[0]
    if "slices" in form:
        source = io.BytesIO(b"".join(path.read_bytes() for path in paths))
    if form.startswith("zip"):
        return {"zipfile": _zipfile(source)}
    if form.startswith("7z"):
        with py7zr.SevenZipFile(source) as archive:
            return {"py7zr": [(f.filename, f.uncompressed) for f in archive.list()]}
    if form.startswith("rar"):
        infos = rarfile.RarFile(source).infolist()
        return {"rarfile": [(info.filename.rstrip("/"), info.file_size) for info in infos]}
    if form.startswith("tar"):
        stream = io.BytesIO(zstd.decompress(source.read_bytes())) if form == "tar.zst" else None
        with tarfile.open(source, fileobj=stream) as archive:
            return {"tarfile": [(member.name, member.size) for member in archive]}
    return {}  # no library reads a spanned zip


def _zipfile(path):
    try:  # Unix tools store UTF-8 without saying so, which zipfile takes for cp437 unless told
        archive = zipfile.ZipFile(path, metadata_encoding="utf-8")
    except UnicodeDecodeError:
        archive = zipfile.ZipFile(path)
    return [(info.filename.rstrip("/"), info.file_size) for info in archive.infolist()]


def _run(*command):
    done = subprocess.run(command, capture_output=True, check=False, env=tool_environment())
    try:
        return done.stdout.decode(), done.returncode
    except UnicodeDecodeError:  # unzip prints names of the DOS age in Latin-1, whatever the locale
        return done.stdout.decode("latin-1"), done.returncode


def _output(*command):
    return _run(*command)[0]


def _sevenzip(path):
    entries = []
    for block in _output("7zz", "l", "-slt", "-ba", str(path)).split("\n\n"):
        fields = dict(line.split(" = ", 1) for line in block.splitlines() if " = " in line)
        if "Path" in fields:
            entries.append((fields["Path"].rstrip("/"), int(fields.get("Size") or 0)))
    return entries


def _unzip(path):
    pattern = re.compile(r"^\S+\s+\S+\s+\S+\s+(\d+)\s+\S+\s+\S+\s+\S+\s+\S+\s(.*)$")
    lines = _output("unzip", "-Z", str(path)).splitlines()
    return [(m[2].rstrip("/"), int(m[1])) for m in map(pattern.match, lines[2:-1]) if m]


def _bsdtar(path):
    pattern = re.compile(r"^\S+\s+\S+\s+\S+\s+\S+\s+(\d+)\s+\S+\s+\S+\s+\S+\s(.*)$")
    output, status = _run("bsdtar", "-tvf", str(path))
    lines = output.splitlines()
    found = [(m[2].split(" link to ")[0].split(" -> ")[0], int(m[1])) for m in map(pattern.match, lines) if m]
    kind = Partial if status else list
    return kind((path.removeprefix("./").rstrip("/"), size) for path, size in found)


def _unrar(path):
    found = {}
    # With -v it follows the volumes; a member that runs over their border is told once in each.
    for block in _output("unrar", "lt", "-v", "-p-", str(path)).split("\n\n"):
        fields = dict(line.strip().split(": ", 1) for line in block.splitlines() if ": " in line)
        if "Name" in fields:
            found[fields["Name"].rstrip("/")] = int(fields.get("Size", 0))
    return list(found.items())
