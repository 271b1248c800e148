"""How the person who runs this can run it again: commands that are copied from the screen have to work."""

from __future__ import annotations

import shlex
import shutil
import sys
from pathlib import Path


def program(called: str | None = None, interpreter: str | None = None) -> str:
    """``worker`` where that is on the PATH and is this program, else the shortest path that leads to it."""
    script = _script(called or sys.argv[0], interpreter or sys.executable)
    if script is None:
        return f"{shlex.quote(interpreter or sys.executable)} -m worker"
    found = shutil.which("worker")
    if found is not None and Path(found).samefile(script):
        return "worker"
    return shlex.quote(shown_path(script, runnable=True))


def shown_path(path: Path, *, runnable: bool = False) -> str:
    """Seen from the working folder if it lies below."""
    try:
        near = path.absolute().relative_to(Path.cwd())
    except ValueError:
        return str(path.absolute())
    return f"./{near}" if runnable and len(near.parts) == 1 else str(near)


def _script(called: str, interpreter: str) -> Path | None:
    """The file that was started; started otherwise, as by ``python -m``, the one beside the interpreter."""
    for path in (Path(called), Path(interpreter).with_name("worker")):
        if path.name == "worker" and len(path.parts) > 1 and path.is_file():
            return path
    return None
