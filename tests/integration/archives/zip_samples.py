"""Zip samples made by Python: plain, zip64, in slices, spanned."""

import io
import struct
import zipfile
import zlib

from sample_registry import GIB, TREE, Sample, sample, write_files


def zip_bytes(tree=None, compression=zipfile.ZIP_DEFLATED, comment=b""):
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", compression) as archive:
        for path, data in (TREE if tree is None else tree).items():
            archive.writestr(zipfile.ZipInfo(path, (2024, 3, 9, 12, 30, 10)), data, compression)
        archive.comment = comment
    return out.getvalue()


@sample("zip")
def zip_deflated(folder):
    return Sample(write_files(folder, ["a.zip"], [zip_bytes()]))


@sample("zip")
def zip_stored_with_comment(folder):
    return Sample(
        write_files(folder, ["Ünï.ZIP"], [zip_bytes(compression=zipfile.ZIP_STORED, comment=b"a comment")])
    )


@sample("zip")
def zip_bzip2_and_lzma(folder):
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        archive.writestr("b.txt", b"b" * 1000, zipfile.ZIP_BZIP2)
        archive.writestr("l.txt", b"l" * 1000, zipfile.ZIP_LZMA)
    return Sample(write_files(folder, ["a.zip"], [out.getvalue()]), {"b.txt": 1000, "l.txt": 1000})


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
    return Sample(write_files(folder, ["a.zip"], [bytes(out.body)]))


@sample("zip")
def zip_empty(folder):
    return Sample(write_files(folder, ["a.zip"], [zip_bytes({})]), {}, {"empty"})


@sample("zip cp437")
def zip_cp437(folder):
    body = zip_bytes({"caf_.txt": b"x"}).replace(b"caf_.txt", b"caf\x82.txt")
    at = body.index(b"PK\x01\x02")
    return Sample(write_files(folder, ["a.zip"], [body[: at + 5] + b"\0" + body[at + 6 :]]), {"café.txt": 1})


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
    return Sample(write_files(folder, ["a.zip"], [out.getvalue()]))


@sample("zip in slices")
def zip_numbered(folder):
    body = zip_bytes()
    slices = [body[at : at + 50_000] for at in range(0, len(body), 50_000)]
    return Sample(write_files(folder, [f"a.zip.{n:03d}" for n in range(1, len(slices) + 1)], slices))


@sample("spanned zip")
def zip_spanned(folder):
    return Sample(write_files(folder, ["a.z01", "a.z02", "a.zip"], spanned_zip(TREE, 80_000)))


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
