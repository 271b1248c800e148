"""What becomes of 7z archives where py7zr's decoders have no wheel for the Python at hand."""

import base64
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

# One member each, readme.txt of 90 bytes.
PPMD = (
    "N3q8ryccAASxmVBFagAAAAAAAAAUAAAAAAAAAMKVtIEAZ/uDfXAkW+QwAADgAFoAVl0AAIEzB64PzpwGxQkqrtViZvpiTK6FjP21lw2alElxVwG/uxcg"
    "2cQ15GwAb/dzLriA5k15YMeWw6Ys2rRSOobsppORqtphU63+e4VG61RoNCS9+E02bAAAFwYMAQleAAcLAQABISEBGAxbAAA="
)
LZMA_AFTER_BCJ = (
    "N3q8ryccAAT68rN9cwAAAAAAAAAUAAAAAAAAAMp8tX8ANBlJ24VcaBSBg8sD//+6DgAA4ABeAFhdAACBMweuD88n8IwHsMPam2yzhKTWcOl3LHuEPlKS"
    "uiCd4yCllzeLkxroASzRY9yCIKdTE5X3iD8vsSw7qoPN6cLGzjahxYezWuJdeJAGcceZalZAxdwAAAAAFwYTAQlgAAcLAQABISEBGAxfAAA="
)


@pytest.fixture
def without_decoders(tmp_path):
    """An environment in which none of them can be imported."""
    for name in ("bcj", "inflate64", "pyppmd"):
        (tmp_path / "absent" / f"{name}.py").parent.mkdir(exist_ok=True)
        (tmp_path / "absent" / f"{name}.py").write_text("raise ImportError(__name__)\n")
    return os.environ | {"PYTHONPATH": str(tmp_path / "absent")}


@pytest.mark.parametrize("packed", [PPMD, LZMA_AFTER_BCJ], ids=["PPMd", "LZMA after BCJ"])
def test_an_archive_whose_decoder_is_absent_is_listed_and_says_that_its_contents_were_not_compared(
    without_decoders, tmp_path, packed
):
    (archive := tmp_path / "a.7z").write_bytes(base64.b64decode(packed))
    command = [Path(sys.executable).with_name("worker"), "archives", "inspect", "--json", archive]
    done = subprocess.run(command, capture_output=True, text=True, env=without_decoders)
    assert (done.returncode, done.stderr) == (0, "")
    (found,) = json.loads(done.stdout)["sets"]
    assert [(entry["path"], entry["size"]) for entry in found["entries"]] == [("readme.txt", 90)]
    assert found["marks"] == ["unverified"]
    assert "packed in a way that is not unpacked here" in found["unchecked"]


def test_everything_else_is_packed_and_unpacked_without_them(without_decoders):
    code = (
        "import io\n"
        "from worker.archives import sevenzip_library as library\n"
        "made = io.BytesIO()\n"
        "with library.SevenZipFile(made, 'w') as archive: archive.writestr(b'hello', 'readme.txt')\n"
        "made.seek(0)\n"
        "with library.SevenZipFile(made) as archive: print(archive.testzip(), library.UNREADABLE)\n"
        "import bcj\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env=without_decoders, cwd="/"
    )
    assert done.stdout == "None ('PPMd', 'Deflate64', 'programs filtered by BCJ')\n"
    assert done.stderr.endswith("ImportError: bcj\n")
