"""7z samples, by py7zr and by 7-Zip itself."""

import py7zr
from sample_registry import EXPECTED, TREE, Sample, sample, tool_sample, write_files


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


def tool(name, options, parts="a.7z", *, form="7z", more="", before="", **about):
    """Made by 7-Zip from the whole tree."""
    tool_sample(name, form, "7zz", f"{before}7zz a -bd {options} ../a.7z .{more}", parts, **about)


HIDDEN = {"marks": ("encrypted", "encrypted-names"), "hidden": True}
SLICES = {"parts": "a.7z.*", "form": "7z in slices"}

tool("sevenzip_tool_solid", "-ms=on")
tool("sevenzip_tool_not_solid", "-ms=off")
tool("sevenzip_tool_stored", "-m0=Copy")
tool("sevenzip_tool_lzma", "-m0=LZMA")
tool("sevenzip_tool_ppmd", "-ms=off -m0=PPMd")
tool("sevenzip_tool_bzip2", "-m0=BZip2")
tool("sevenzip_tool_deflate", "-m0=Deflate")
tool("sevenzip_tool_deflate64", "-m0=Deflate64")
tool("sevenzip_tool_bcj", "-m0=BCJ -m1=LZMA")
tool("sevenzip_tool_bcj2", "-m0=BCJ2 -m1=LZMA -m2=LZMA -m3=LZMA -mb0:1 -mb0s1:2 -mb0s2:3")
tool("sevenzip_tool_delta", "-m0=Delta:4 -m1=LZMA2")
tool("sevenzip_tool_plain_header", "-mhc=off")
tool("sevenzip_tool_all_times", "-mtc=on -mta=on")
tool("sevenzip_tool_encrypted", "-psecret", marks=("encrypted",))
tool("sevenzip_tool_encrypted_names", "-psecret -mhe=on", **HIDDEN)
tool("sevenzip_tool_links", "-snl", before="ln -s readme.txt link; ", changes={"link": len("readme.txt")},
     marks=("links",))  # fmt: skip
tool(
    "sevenzip_tool_updated", "-ms=off", more="; touch -d @1720000000 readme.txt; 7zz u -bd ../a.7z readme.txt"
)
tool("sevenzip_tool_empty", "", more="; 7zz d -bd ../a.7z '*'", marks=("empty",), tree={"readme.txt": b"x"},
     changes={"readme.txt": None, "folder/deep/": None, "folder/deep/er/": None})  # fmt: skip
tool("sevenzip_numbered_tool", "-v5k", **SLICES)
tool("sevenzip_numbered_tool_encrypted", "-v5k -psecret", marks=("encrypted",), **SLICES)
tool("sevenzip_numbered_tool_encrypted_names", "-v5k -psecret -mhe=on", **SLICES, **HIDDEN)
