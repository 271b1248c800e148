"""RAR samples of both generations, written by ``rar_writer`` or by the real tool."""

import rar_writer
from sample_registry import GIB, TREE, Sample, sample, write_files


@sample("rar4")
def rar4_single(folder):
    return Sample(write_files(folder, ["a.rar"], rar_writer.rar4(TREE)))


@sample("rar4")
def rar4_encrypted(folder):
    return Sample(write_files(folder, ["a.rar"], rar_writer.rar4(TREE, encrypted=True)), marks={"encrypted"})


@sample("rar4")
def rar4_encrypted_names(folder):
    files = write_files(folder, ["a.rar"], [rar_writer.rar4_encrypted_names()])
    return Sample(files, None, {"encrypted", "encrypted-names"})


@sample("rar4")
def rar4_empty(folder):
    return Sample(write_files(folder, ["a.rar"], rar_writer.rar4({})), {}, {"empty"})


@sample("rar4 volumes")
def rar4_legacy_volumes(folder):
    bodies = rar_writer.rar4(TREE, 60_000)
    return Sample(write_files(folder, ["a.rar", *(f"a.r{n:02d}" for n in range(len(bodies) - 1))], bodies))


@sample("rar4 volumes")
def rar4_part_volumes(folder):
    bodies = rar_writer.rar4(TREE, 60_000, new_names=True)
    return Sample(write_files(folder, [f"A.Part{n}.RAR" for n in range(1, len(bodies) + 1)], bodies))


@sample("rar4", fuzzed=False)
def rar4_sparse(folder):
    return _sparse_rar(
        folder, rar_writer.MAGIC4 + rar_writer._block4(0x73, 0, bytes(6)), rar_writer.file4, rar_writer.end4()
    )


@sample("rar5")
def rar5_single(folder):
    return Sample(write_files(folder, ["a.rar"], rar_writer.rar5(TREE)))


@sample("rar5 volumes")
def rar5_part_volumes(folder):
    bodies = rar_writer.rar5(TREE, 60_000)
    return Sample(write_files(folder, [f"a.part{n:02d}.rar" for n in range(1, len(bodies) + 1)], bodies))


@sample("rar in slices")
def rar5_numbered(folder):
    body = rar_writer.rar5(TREE)[0]
    slices = [body[at : at + 50_000] for at in range(0, len(body), 50_000)]
    return Sample(write_files(folder, [f"a.rar.{n:03d}" for n in range(1, len(slices) + 1)], slices))


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
