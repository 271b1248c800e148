import io
import re
import zipfile

import archive_samples as samples
import memory_sets
import pytest
from PIL import Image

from worker.archives.sevenzip_library import UNREADABLE
from worker.archives.thumbnail import EDGE

pytestmark = pytest.mark.asyncio(loop_scope="module")

# Not to be had: encrypted members, samples without a picture.
WITHOUT = re.compile("encrypted|aes|sparse|empty|cp437|lzma")
# Packed in ways that nothing here unpacks, or across a border of volumes, or with another checksum than CRC-32.
NOT_UNPACKED = [
    "rar4_tool_solid", "rar4_tool_solid_volumes", "rar4_tool_stored_volumes", "rar5_tool_stored_volumes",
    "rar5_tool_blake2", "sevenzip_tool_bcj2", "zip_sevenzip_deflate64", "zip_sevenzip_ppmd",
]  # fmt: skip
READABLE = [name for name in samples.MAKERS if not WITHOUT.search(name) and name not in NOT_UNPACKED]
PACKED_RAR = re.compile("rar[45]_tool_(?!stored)")
ENCRYPTED = [name for name in samples.MAKERS if re.search("encrypted|aes", name)]
NOTHING_TO_SEE = ["zip_empty", "tar_empty", "sevenzip_tool_empty", *ENCRYPTED, *NOT_UNPACKED]


async def preview_of(nursery, bodies):
    _, archive = memory_sets.set_of(bodies)
    return await nursery.preview(archive, memory_sets.QUICK)


@pytest.mark.parametrize("name", READABLE)
async def test_p11_the_picture_inside_becomes_a_thumbnail_of_one_size(name, tmp_path, nursery):
    sample = samples.build(name, tmp_path)
    preview = await preview_of(nursery, {file.name: file.read_bytes() for file in sample.files})
    # A RAR that does not lie on the disk is opened by nothing; without pyppmd PPMd is left out.
    if PACKED_RAR.match(name) or ("ppmd" in name and "PPMd" in UNREADABLE):
        assert preview is None
        return
    assert preview.path.removeprefix("./") == "folder/deep/er/cover.jpg"
    with Image.open(io.BytesIO(preview.jpeg)) as image:
        assert (image.format, max(image.size)) == ("JPEG", EDGE)


@pytest.mark.parametrize("method", [zipfile.ZIP_STORED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
async def test_a_picture_is_read_whatever_a_zip_packs_it_with(method, nursery):
    picture = samples.TREE["folder/deep/er/cover.jpg"]
    assert await preview_of(nursery, {"a.zip": samples.zip_bytes({"cover.jpg": picture}, method)})


async def test_a_broken_picture_gives_way_to_the_next(nursery):
    good = samples.TREE["folder/deep/er/cover.jpg"]
    body = samples.zip_bytes({"cover.jpg": b"\xff\xd8 broken", "b.png": b"\x89PNG broken", "c.jpg": good})
    assert (await preview_of(nursery, {"a.zip": body})).path == "c.jpg"


async def test_a_picture_bomb_is_not_decoded(nursery):
    huge = io.BytesIO()
    Image.new("1", (20_000, 20_000)).save(huge, "PNG")
    assert await preview_of(nursery, {"a.zip": samples.zip_bytes({"cover.png": huge.getvalue()})}) is None


@pytest.mark.parametrize("mode", ["1", "L", "LA", "P", "RGBA", "I;16"])
async def test_pictures_of_every_kind_are_thumbnailed(mode, nursery):
    out = io.BytesIO()
    Image.new(mode, (500, 100)).save(out, "PNG")
    preview = await preview_of(nursery, {"a.zip": samples.zip_bytes({"x.png": out.getvalue()})})
    with Image.open(io.BytesIO(preview.jpeg)) as image:
        assert image.size == (320, 64)


@pytest.mark.parametrize("name", NOTHING_TO_SEE)
async def test_where_no_picture_can_be_read_there_is_no_preview(name, tmp_path, nursery):
    sample = samples.build(name, tmp_path)
    assert await preview_of(nursery, {file.name: file.read_bytes() for file in sample.files}) is None
