"""The archives that the demo posts: real ones of every kind, small enough to be made in a moment."""

from __future__ import annotations

import io
import random
import tarfile
import zipfile
from dataclasses import dataclass
from typing import TYPE_CHECKING

from PIL import Image

from worker.archives.sevenzip_library import SevenZipFile
from worker.demo.rar_volumes import rar_volumes

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

_WHEN = (2026, 1, 1, 12, 0, 0)
_KILOBYTE = 1000


@dataclass(frozen=True, slots=True)
class Sample:
    """An archive as somebody would post it: its files, in the order in which their bytes belong."""

    files: tuple[Path, ...]


def make_samples(folder: Path) -> dict[str, Sample]:
    """Every sample by its name."""
    folder.mkdir(parents=True, exist_ok=True)
    return {name: Sample(tuple(_write(folder, make()))) for name, make in _RECIPES.items()}


def make_photo(folder: Path) -> Path:
    """A picture that goes with a posting."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "preview.jpg"
    path.write_bytes(_picture((40, 90, 160)))
    return path


def _write(folder: Path, files: dict[str, bytes]) -> list[Path]:
    paths = [folder / name for name in files]
    for path, data in zip(paths, files.values(), strict=True):
        path.write_bytes(data)
    return paths


def _noise(seed: str, kilobytes: int) -> bytes:
    return random.Random(seed).randbytes(kilobytes * _KILOBYTE)  # noqa: S311 - sample data


def _picture(colour: tuple[int, int, int]) -> bytes:
    made = io.BytesIO()
    Image.new("RGB", (640, 480), colour).save(made, "JPEG")
    return made.getvalue()


def _tree(title: str, kilobytes: int) -> dict[str, bytes]:
    return {
        "readme.txt": f"{title}\nPrint at 0.2 mm.\n".encode(),
        "parts/base.stl": _noise(f"{title} base", kilobytes // 2),
        "parts/lid.stl": _noise(f"{title} lid", kilobytes - kilobytes // 2),
    }


def _zip(title: str, kilobytes: int, *, picture: bool = False) -> bytes:
    members = _tree(title, kilobytes)
    if picture:
        members["images/cover.jpg"] = _picture((150, 60, 40))
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w") as archive:
        for name, data in members.items():
            archive.writestr(zipfile.ZipInfo(name, _WHEN), data)
    return made.getvalue()


def _damaged_zip() -> dict[str, bytes]:
    whole = _zip("Broken", 120)
    return {"Broken.zip": whole[: len(whole) * 2 // 3]}


def _sevenzip(title: str, kilobytes: int, password: str | None = None) -> bytes:
    made = io.BytesIO()
    with SevenZipFile(made, "w", password=password, header_encryption=password is not None) as archive:
        for name, data in _tree(title, kilobytes).items():
            archive.writestr(data, name)
    return made.getvalue()


def _sevenzip_slices() -> dict[str, bytes]:
    data = _sevenzip("Vase", 900)
    step = len(data) // 3 + 1
    return {f"Vase.7z.{n + 1:03d}": data[n * step : (n + 1) * step] for n in range(3)}


def _rar(name: str, kilobytes: int, volumes: int) -> dict[str, bytes]:
    members = _tree(name, kilobytes)
    made = rar_volumes(members, sum(map(len, members.values())) // volumes + 1)
    return {f"{name}.part{number}.rar": data for number, data in enumerate(made, 1)}


def _tar() -> dict[str, bytes]:
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w:gz") as archive:
        for name, data in _tree("Pendulum", 240).items():
            entry = tarfile.TarInfo(name)
            entry.size = len(data)
            archive.addfile(entry, io.BytesIO(data))
    return {"Clockmaker - Pendulum.tar.gz": made.getvalue()}


_RECIPES: dict[str, Callable[[], dict[str, bytes]]] = {
    **{
        f"kit {number}": lambda number=number: {  # type: ignore[misc]
            f"Workshop - Kit {number:02d}.zip": _zip(f"Kit {number}", 150 * number, picture=number % 2 == 0)
        }
        for number in range(1, 7)
    },
    "7z": lambda: {"Workshop - Dragon.7z": _sevenzip("Dragon", 600)},
    "rar set": lambda: _rar("Atlas", 1_200, 3),
    "rar set with a hole": lambda: _rar("Half a Book", 300, 3),
    "7z slices": _sevenzip_slices,
    "oversized": lambda: {"Panorama.zip": _zip("Panorama", 9_000)},
    "encrypted": lambda: {"Secret Plans.7z": _sevenzip("Secret", 200, password="open sesame")},  # noqa: S106 - sample data
    "corrupt": _damaged_zip,
    "tar": _tar,
    "lamp": lambda: {"Lamp - Reading Light.zip": _zip("Reading Light", 300)},
    "protected": lambda: {"Exclusive.zip": _zip("Exclusive", 100)},
}
