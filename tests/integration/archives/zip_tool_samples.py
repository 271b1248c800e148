"""Zip samples made by Info-ZIP's zip, by 7-Zip and by libarchive."""

from sample_registry import TREE, tool_sample

ENCRYPTED = {"marks": ("encrypted",)}
# zip cuts no disk smaller than this, so that three of them take more than the small tree.
DISKS = {"parts": "a.z*", "tree": {**TREE, "folder/noise.bin": TREE["folder/noise.bin"][:132_000]}}


def info_zip(kind, options, parts="a.zip", *, form="zip", before="", **about):
    """Made by zip."""
    tool_sample(f"zip_tool{kind}", form, "zip", f"{before}zip -q -r {options} ../a.zip .", parts, **about)


def sevenzip(kind, options, parts="a.zip", *, form="zip", **about):
    """Made by 7-Zip."""
    tool_sample(f"zip_sevenzip_{kind}", form, "7zz", f"7zz a -bd -tzip {options} ../a.zip .", parts, **about)


info_zip("", "-9")
info_zip("_stored", "-0")
info_zip("_bzip2", "-Z bzip2")
info_zip("_encrypted", "-P secret", **ENCRYPTED)
info_zip("_comment", "-z", before="echo Read me first | ")
info_zip("_zip64", "-fz", form="zip64")
info_zip("_unicode_names", "-UN=UTF8")
info_zip("_without_extras", "-X -D", changes=dict.fromkeys(["folder/", "folder/deep/", "folder/deep/er/"]))
info_zip(
    "_links", "-y", before="ln -s readme.txt link; ", changes={"link": len("readme.txt")}, marks=("links",)
)
info_zip("_spanned", "-s 64k", form="spanned zip", **DISKS)
info_zip("_spanned_encrypted", "-s 64k -P secret", form="spanned zip", **DISKS, **ENCRYPTED)
info_zip("_spanned_zip64", "-fz -s 64k", form="spanned zip64", **DISKS)
tool_sample("zip_tool_streamed", "zip", "zip", "zip -q -r - . | cat >../a.zip", "a.zip")
tool_sample(
    "zip_tool_behind_a_program", "zip", "zip",
    "zip -q -r ../b.zip .; (printf 'MZ, a program'; cat ../b.zip) >../a.zip; zip -q -A ../a.zip", "a.zip",
)  # fmt: skip
sevenzip("deflate", "-mm=Deflate")
sevenzip("stored", "-mm=Copy")
sevenzip("deflate64", "-mm=Deflate64")
sevenzip("bzip2", "-mm=BZip2")
sevenzip("lzma", "-mm=LZMA")
sevenzip("ppmd", "-mm=PPMd")
sevenzip("unicode_names", "-mcu=on")
sevenzip("encrypted", "-psecret -mem=ZipCrypto", **ENCRYPTED)
sevenzip("aes", "-psecret -mem=AES256", **ENCRYPTED)
sevenzip("aes128", "-psecret -mem=AES128", **ENCRYPTED)
sevenzip("slices", "-v5k", "a.zip.*", form="zip in slices")
sevenzip("slices_aes", "-v5k -psecret -mem=AES256", "a.zip.*", form="zip in slices", **ENCRYPTED)
tool_sample("zip_bsdtar", "zip", "bsdtar", "bsdtar -c --format zip -f ../a.zip .", "a.zip", root="./")
