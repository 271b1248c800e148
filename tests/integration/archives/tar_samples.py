"""Tar samples, plain and compressed, by Python and by the programs."""

import bz2
import gzip
import io
import lzma
import struct
import tarfile

from sample_registry import GIB, TREE, Sample, sample, tool_sample, write_files

from worker.archives.zstd_library import zstd


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
    return Sample(write_files(folder, ["a.tar"], [tar_bytes()]))


@sample("tar")
def tar_pax(folder):
    return Sample(write_files(folder, ["a.tar"], [tar_bytes(form=tarfile.PAX_FORMAT)]))


@sample("tar")
def tar_empty(folder):
    return Sample(write_files(folder, ["a.tar"], [tar_bytes({})]), {}, {"empty"})


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
    return Sample(write_files(folder, ["a.tar.gz"], [gzip.compress(tar_bytes())]))


@sample("tar.gz")
def tgz(folder):
    return Sample(write_files(folder, ["a.TGZ"], [gzip.compress(tar_bytes(form=tarfile.PAX_FORMAT))]))


@sample("tar.bz2")
def tar_bz2(folder):
    return Sample(write_files(folder, ["a.tar.bz2"], [bz2.compress(tar_bytes())]))


@sample("tar.xz")
def tar_xz(folder):
    return Sample(write_files(folder, ["a.tar.xz"], [lzma.compress(tar_bytes())]))


@sample("tar.zst")
def tar_zst(folder):
    options = {zstd.CompressionParameter.checksum_flag: 1}
    return Sample(write_files(folder, ["a.tar.zst"], [zstd.compress(tar_bytes(), options=options)]))


@sample("tar.zst")
def tar_zst_in_pieces(folder):
    """As pzstd writes it: before each frame one to be skipped, which holds the frame's size."""
    body = tar_bytes()
    frames = [zstd.compress(body[at : at + 60_000]) for at in range(0, len(body), 60_000)]
    pieces = [struct.pack("<3L", 0x184D2A50, 4, len(frame)) + frame for frame in frames]
    return Sample(write_files(folder, ["a.tar.zst"], [b"".join(pieces)]))


def gnu_tar(kind, line, packer="", **about):
    """Made by GNU tar; ``packer`` is the program that compresses."""
    ending = kind.replace("_", ".") if packer else "tar"
    name = f"tar_tool_{kind.removeprefix('tar_')}"
    tool_sample(name, ending, f"{packer} tar", line.format(f"../a.{ending}"), f"a.{ending}", **about)


def bsdtar(kind, line, **about):
    """Made by libarchive."""
    owner = "--uid 0 --gid 0 --uname root --gname root"
    line = f"bsdtar {owner} -c {line} -f ../a.{kind} readme.txt empty.bin folder"
    tool_sample(f"{kind.replace('.', '_')}_bsdtar", kind, "bsdtar", line, f"a.{kind}", **about)


WITH_LINKS = "ln -s readme.txt link; ln readme.txt same; "
gnu_tar("gnu", "tar --format=gnu -cf {} .", root="./")
gnu_tar("pax", "tar --format=pax -cf {} readme.txt empty.bin folder")
gnu_tar("ustar", "tar --format=ustar -cf {} readme.txt empty.bin folder")
gnu_tar(
    "links",
    WITH_LINKS + "tar -cf {} folder empty.bin readme.txt link same",
    changes={"link": 0, "same": 0},
    marks=("links",),
)
gnu_tar(
    "sparse",
    "truncate -s 1M holes; tar -S --format=gnu -cf {} readme.txt empty.bin folder holes",
    changes={"holes": 2**20},
)
gnu_tar(
    "sparse_pax",
    "truncate -s 1M holes; tar -S --format=pax -cf {} readme.txt empty.bin folder holes",
    changes={"holes": 2**20},
)
gnu_tar("tar_gz", "tar -czf {} readme.txt empty.bin folder", "gzip")
gnu_tar("tar_bz2", "tar -cjf {} readme.txt empty.bin folder", "bzip2")
gnu_tar("tar_xz", "tar -cJf {} readme.txt empty.bin folder", "xz")
gnu_tar("tar_zst", "tar --zstd -cf {} readme.txt empty.bin folder", "zstd")
bsdtar("tar", "--format=pax")
bsdtar("tar.gz", "-z")
bsdtar("tar.bz2", "-j")
bsdtar("tar.xz", "-J")
bsdtar("tar.zst", "--zstd")
