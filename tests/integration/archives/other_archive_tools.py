"""What other programs and libraries say is in an archive: pairs of path (no closing slash) and size."""

import io
import re
import shutil
import subprocess
import tarfile
import zipfile

import py7zr
import rarfile


def listings(form, parts, folder):
    """One listing per tool that is installed and can read this kind."""
    first = folder / parts[0]
    last = folder / parts[-1]
    single = len(parts) == 1
    found = {}
    if form.startswith("zip") and single:
        found["zipfile"] = _zipfile(first)
        if shutil.which("unzip") and found["zipfile"]:
            found["unzip -Z"] = _unzip(first)
    if form.startswith("7z") and single:
        with py7zr.SevenZipFile(first) as archive:
            found["py7zr"] = [(f.filename, f.uncompressed) for f in archive.list()]
    if form.startswith("rar"):
        sliced = (
            io.BytesIO(b"".join((folder / part).read_bytes() for part in parts)) if "slices" in form else None
        )
        rar = rarfile.RarFile(sliced or first)
        found["rarfile"] = [(i.filename.rstrip("/"), i.file_size) for i in rar.infolist()]
    if form.startswith("tar") and form != "tar.zst":
        with tarfile.open(first) as archive:
            found["tarfile"] = [(m.name, m.size) for m in archive]
    if form == "zip cp437":
        return found  # the tools below show such names as raw bytes
    if not form.startswith(("rar", "tar.")) and shutil.which("7zz"):
        found["7z l"] = _sevenzip(last if form == "spanned zip" else first)
    if single and form != "7z" and shutil.which("bsdtar"):
        found["bsdtar -tv"] = _bsdtar(first)
    return found


def _zipfile(path):
    try:  # Unix tools store UTF-8 without saying so, which zipfile takes for cp437 unless told
        archive = zipfile.ZipFile(path, metadata_encoding="utf-8")
    except UnicodeDecodeError:
        archive = zipfile.ZipFile(path)
    return [(info.filename.rstrip("/"), info.file_size) for info in archive.infolist()]


def _output(*command):
    env = {"LC_ALL": "C.UTF-8", "PATH": "/usr/bin:/bin:/usr/local/bin"}
    done = subprocess.run(command, capture_output=True, check=False, env=env)
    try:
        return done.stdout.decode()
    except UnicodeDecodeError:  # unzip prints names of the DOS age in Latin-1, whatever the locale
        return done.stdout.decode("latin-1")


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
    lines = _output("bsdtar", "-tvf", str(path)).splitlines()
    found = [(m[2].split(" link to ")[0].split(" -> ")[0], int(m[1])) for m in map(pattern.match, lines) if m]
    return [(path.removeprefix("./").rstrip("/"), size) for path, size in found]
