"""What other programs and libraries say is in an archive: pairs of path (no closing slash) and size, if told."""

import io
import re
import subprocess
import tarfile
import warnings
import zipfile

import archive_tools
import py7zr
import rarfile
from tar_samples import zstd


class Partial(list):
    """What a program listed before it gave up, as libarchive does on some solid RARs."""


def commands(form, parts):
    """Which programs list this kind of archive, and how: label, tool and arguments."""
    first, single = parts[0], len(parts) == 1
    if form == "zip cp437":
        return  # they show such names as raw bytes
    if form.startswith("zip") and single:
        yield "unzip -Z", "unzip", ["-Z", first]
    if not form.startswith(
        "tar"
    ):  # it tells links and sparse members of a tar by what the tar stores for them
        yield "7z l", "7zz", ["l", "-slt", "-ba", "-p", parts[-1] if form.startswith("spanned") else first]
    if single and form != "7z":
        yield "bsdtar -tv", "bsdtar", ["-tvf", first]
    if form.startswith("tar"):
        yield "tar -tv", "tar", ["--full-time", "--quoting-style=literal", "-tvf", first]
    if form.startswith("rar") and "slices" not in form:
        # With -v they follow the volumes; a member that runs over their border is told once in each.
        yield "unrar lt", "unrar", ["lt", "-v", "-p-", first]
        yield "rar lt", "rar", ["lt", "-v", "-p-", first]


def installed(form, parts):
    """Those whose program is here."""
    return [
        (label, tool, options)
        for label, tool, options in commands(form, parts)
        if archive_tools.program(tool)
    ]


def ask(tool, options, folder):
    """A program's exit code and what it says."""
    done = subprocess.run(
        [archive_tools.program(tool), *options],
        cwd=folder, capture_output=True, env=archive_tools.environment(), stdin=subprocess.DEVNULL,
    )  # fmt: skip
    try:
        return done.returncode, done.stdout.decode()
    except UnicodeDecodeError:  # unzip prints names of the DOS age in Latin-1, whatever the locale
        return done.returncode, done.stdout.decode("latin-1")


def listings(form, parts, folder):
    """One listing per library that can read this kind, and per installed program."""
    found = libraries(form, [folder / part for part in parts])
    for label, tool, options in installed(form, parts):
        if tool != "unzip" or found["zipfile"]:  # which calls an empty zip no zip at all
            found[label] = parsed(label, *ask(tool, options, folder))
    return found


def parsed(label, status, output):
    """The entries in what a program said."""
    entries = PARSERS[label](output)
    return Partial(entries) if status else entries


def libraries(form, paths):
    """One listing per Python library that can read this kind."""
    source = paths[0]
    if "slices" in form:
        source = io.BytesIO(b"".join(path.read_bytes() for path in paths))
    if form.startswith("zip"):
        return {"zipfile": _zipfile(source)}
    if form.startswith("7z"):
        with py7zr.SevenZipFile(source) as archive:
            return {"py7zr": [(f.filename, f.uncompressed) for f in archive.list()]}
    if form.startswith("rar"):
        try:
            return {"rarfile": _rarfile(source)}
        except rarfile.RarCannotExec:  # a packed comment, and no program to unpack it: it then lists nothing
            return {}
    if form.startswith("tar"):
        stream = io.BytesIO(zstd.decompress(source.read_bytes())) if form == "tar.zst" else None
        with tarfile.open(source, fileobj=stream) as archive:
            return {"tarfile": [(member.name, member.size) for member in archive]}
    return {}  # no library reads a spanned zip


def _rarfile(source):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return [(info.filename.rstrip("/"), info.file_size) for info in rarfile.RarFile(source).infolist()]


def _zipfile(path):
    try:  # Unix tools store UTF-8 without saying so, which zipfile takes for cp437 unless told
        archive = zipfile.ZipFile(path, metadata_encoding="utf-8")
    except UnicodeDecodeError:
        archive = zipfile.ZipFile(path)
    return [(info.filename.rstrip("/"), info.file_size) for info in archive.infolist()]


def _fields(output, mark):
    for block in output.split("\n\n"):
        yield dict(line.lstrip().split(mark, 1) for line in block.splitlines() if mark in line)


def _sevenzip(output):
    blocks = [fields for fields in _fields(output, " = ") if "Path" in fields]
    return [(fields["Path"].rstrip("/"), int(fields.get("Size") or 0)) for fields in blocks]


def _unrar(output):
    blocks = [fields for fields in _fields(output, ": ") if "Name" in fields]
    return list({fields["Name"].rstrip("/"): int(fields.get("Size", 0)) for fields in blocks}.items())


def _rows(pattern, lines):
    matches = [re.match(pattern, line) for line in lines]
    return [(match[2], int(match[1])) for match in matches if match]


def _unzip(output):
    rows = _rows(r"\S+\s+\S+\s+\S+\s+(\d+)\s+\S+\s+\S+\s+\S+\s+\S+\s(.*)$", output.splitlines()[2:-1])
    return [(path.rstrip("/"), size) for path, size in rows]


def _bsdtar(output):
    return _plain(_rows(r"\S+\s+\S+\s+\S+\s+\S+\s+(\d+)\s+\S+\s+\S+\s+\S+\s(.*)$", output.splitlines()))


def _tar(output):
    return _plain(_rows(r"\S+\s+\S+\s+(\d+)\s+\S+\s+\S+\s(.*)$", output.splitlines()))


def _plain(rows):
    """Without what links point to; how long that is, these programs do not tell: None."""
    rows = [(path.split(" -> ")[0], None if " -> " in path else size) for path, size in rows]
    return [(path.split(" link to ")[0].rstrip("/"), size) for path, size in rows]


PARSERS = {
    "unzip -Z": _unzip, "7z l": _sevenzip, "bsdtar -tv": _bsdtar, "tar -tv": _tar, "unrar lt": _unrar,
    "rar lt": _unrar,
}  # fmt: skip
