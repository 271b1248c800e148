"""What real tools have made, kept as files, each with what tools say is in it.

``kept/NAME/`` has the parts and ``kept/NAME.json`` how they were made, what they hold, and the answer of every
program that was asked for a listing: its version, its command line, its exit code and its output, word for word.
``keep_samples.py`` makes them anew.
"""

import json
import shutil
from pathlib import Path

FOLDER = Path(__file__).parent / "kept"


def names():
    return sorted(path.stem for path in FOLDER.glob("*.json"))


def read(name):
    return json.loads((FOLDER / f"{name}.json").read_text())


def copy(name, folder):
    """Put the parts into a folder; their paths, what they hold, and their marks."""
    about = read(name)
    files = [Path(shutil.copyfile(FOLDER / name / part, folder / part)) for part in about["parts"]]
    return files, about["entries"], set(about["marks"])


def write(name, sample, about):
    """Keep a sample in place of the one of that name."""
    target = FOLDER / name
    shutil.rmtree(target, ignore_errors=True)
    target.mkdir(parents=True)
    for file in sample.files:
        shutil.copyfile(file, target / file.name)
    holds = {"parts": [file.name for file in sample.files], "marks": sorted(sample.marks)}
    text = json.dumps({**about, **holds, "entries": sample.entries}, ensure_ascii=False, indent=1)
    (FOLDER / f"{name}.json").write_text(text + "\n")


def files(name):
    """All that is kept of a sample."""
    return [FOLDER / f"{name}.json", *(FOLDER / name).iterdir()]
