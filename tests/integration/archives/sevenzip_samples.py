"""7z samples."""

import py7zr
from sample_registry import EXPECTED, TREE, Sample, run_tool, sample, with_folders, write_files


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
    files = write_files(folder, [f"b.7z.{n:03d}" for n in range(1, len(slices) + 1)], slices)
    return Sample(files, {path: size for path, size in EXPECTED.items() if not path.endswith("/")})


@sample("7z", "7zz")
def sevenzip_tool_solid(folder):
    return with_folders([run_tool(folder, "7zz", "a", "-ms=on", "../a.7z", ".") / "a.7z"])


@sample("7z", "7zz")
def sevenzip_tool_not_solid_ppmd(folder):
    return with_folders([run_tool(folder, "7zz", "a", "-ms=off", "-m0=PPMd", "../a.7z", ".") / "a.7z"])


@sample("7z", "7zz")
def sevenzip_tool_encrypted(folder):
    run_tool(folder, "7zz", "a", "-psecret", "../a.7z", ".")
    return with_folders([folder / "a.7z"], marks={"encrypted"})


@sample("7z", "7zz")
def sevenzip_tool_encrypted_names(folder):
    run_tool(folder, "7zz", "a", "-psecret", "-mhe=on", "../a.7z", ".")
    return Sample([folder / "a.7z"], None, {"encrypted", "encrypted-names"})


@sample("7z", "7zz")
def sevenzip_tool_empty(folder):
    run_tool(folder, "7zz", "a", "../a.7z", "readme.txt")
    run_tool(folder, "7zz", "d", "../a.7z", "readme.txt")
    return Sample([folder / "a.7z"], {}, {"empty"})


@sample("7z in slices", "7zz")
def sevenzip_numbered_tool(folder):
    run_tool(folder, "7zz", "a", "-v50k", "../a.7z", ".")
    return with_folders(folder.glob("a.7z.*"))
