"""What other programs make of a damaged archive: do they notice, and what do they unpack?"""

import io
import subprocess
import tarfile
import zipfile

import archive_tools
import py7zr
from archive_samples import zstd

UNPACKERS = {"gz": "gzip", "bz2": "bzip2", "xz": "xz", "zst": "zstd"}


def accepts(form, parts, folder):
    """Whether the format's own program finds nothing wrong; None if it is not installed.

    ``parts`` has the bodies by name, in order.
    """
    if "slices" in form:  # cut anywhere, so that the program for the whole is the one to ask
        parts = {next(iter(parts)).rpartition(".")[0]: b"".join(parts.values())}
    for name, body in parts.items():
        (folder / name).write_bytes(body)
    first, last = folder / next(iter(parts)), folder / list(parts)[-1]
    if form.startswith("zip"):
        return _passes("unzip", "-tqq", "-P", "", first)
    if form.startswith("7z"):
        return _passes("7zz", "t", "-p", "-bd", first)
    if form.startswith("spanned"):
        return _passes("7zz", "t", "-p", "-bd", last)
    if form.startswith("rar"):
        return _passes("unrar", "t", "-p-", "-inul", first)
    sound = _passes("bsdtar", "-tf", first)
    packer = UNPACKERS.get(form.rpartition(".")[2])
    return sound and _passes(packer, "-t", "-q", first) if packer and sound else sound


def _passes(program, *arguments):
    path = archive_tools.program(program)
    if path is None:
        return None
    command = [path, *map(str, arguments)]
    done = subprocess.run(
        command, capture_output=True, check=False, env=archive_tools.environment(), stdin=subprocess.DEVNULL
    )
    return done.returncode == 0


def contents(form, parts):
    """What a library unpacks, by name; None where none can, or where it complains."""
    body = io.BytesIO(b"".join(parts.values()))
    try:
        if form.startswith("zip"):
            archive = zipfile.ZipFile(body)
            return {info.filename: archive.read(info) for info in archive.infolist()}
        if form.startswith("7z"):
            factory = py7zr.io.BytesIOFactory(2**30)
            py7zr.SevenZipFile(body).extractall(factory=factory)
            return {name: product.read() for name, product in factory.products.items()}
        if form.startswith("tar"):
            stream = io.BytesIO(zstd.decompress(body.getvalue())) if form == "tar.zst" else body
            with tarfile.open(fileobj=stream) as archive:
                return {member.name: _read(archive, member) for member in archive}
    except Exception:  # noqa: BLE001  # whatever it complains of, it does not unpack the same
        return None
    return None


def _read(archive, member):
    return archive.extractfile(member).read() if member.isreg() else member.type
