"""What the build adds to the sources: the compiled extension where there is a compiler, and the commit.

Without a compiler, or for a processor that the source does not know, the package is complete all the same:
the worker falls back to tgcrypto, and `worker doctor` says which cipher is in use. `python hatch_build.py`
compiles in place.

Where the sources come without git, as into an image, `ARCHIVE_FLEET_COMMIT` names the commit.
"""

from __future__ import annotations

import os
import runpy
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface
from packaging.tags import sys_tags

SOURCE = Path("worker/cipher/_ige.c")
# The stable ABI of 3.11: one library serves every Python from there on.
LIBRARY = Path("worker/cipher/_ige.abi3.so")
TAG = "cp311-abi3"
FLAGS = ("-O3", "-fPIC", "-shared", "-fvisibility=hidden", "-Wall", "-Wextra")


class ReleaseHook(BuildHookInterface):  # type: ignore[type-arg] # hatchling fills it in
    """Adds the library to the package if it could be made, and the commit if it is known."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        root = Path(self.root)
        # Installed in place, the package is the checkout, and git knows more than a file would.
        if version != "editable":
            self._write_commit(root, build_data)
        if self.target_name == "wheel" and compile_extension(root):
            build_data["force_include"][str(root / LIBRARY)] = LIBRARY.as_posix()
            build_data["pure_python"] = False
            build_data["tag"] = f"{TAG}-{platform()}"

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:  # noqa: ARG002
        if folder := getattr(self, "_folder", None):
            shutil.rmtree(folder)

    def _write_commit(self, root: Path, build_data: dict[str, Any]) -> None:
        release = runpy.run_path(str(root / "worker/release.py"))
        commit = os.environ.get("ARCHIVE_FLEET_COMMIT") or release["commit"](root / "worker")
        if commit == release["UNKNOWN"]:
            return
        # Not beside the sources, where it would outlive this build and this commit.
        self._folder = Path(tempfile.mkdtemp())
        written = self._folder / release["FILE"]
        written.write_text(f"{commit}\n", encoding="ascii")
        build_data["force_include"][str(written)] = f"worker/{release['FILE']}"


def platform() -> str:
    """This machine's own; that the library suits any older one that pip would name nobody has checked."""
    platforms = (tag.platform for tag in sys_tags())
    return next(each for each in platforms if "manylinux" not in each and "musllinux" not in each)


def compile_extension(root: Path) -> bool:
    """Make the library beside its source; False where that is not possible."""
    compiler = os.environ.get("CC") or shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    (root / LIBRARY).unlink(missing_ok=True)
    if not compiler or sys.platform == "win32":
        print("no C compiler: the AES extension is left out", file=sys.stderr)
        return False
    undefined = ["-undefined", "dynamic_lookup"] if sys.platform == "darwin" else []
    include = sysconfig.get_path("include")
    # Made aside and renamed: a worker that is running keeps the library it has loaded.
    made = root / LIBRARY.with_suffix(f".{os.getpid()}")
    command = [*compiler.split(), *FLAGS, *undefined, f"-I{include}", str(root / SOURCE), "-o", str(made)]
    try:
        subprocess.run(command, capture_output=True, text=True, check=True)  # noqa: S603 - the user's compiler
    except (OSError, subprocess.CalledProcessError) as error:
        reason = getattr(error, "stderr", None) or str(error)
        print(f"the AES extension is left out: {reason[-500:]}", file=sys.stderr)
        made.unlink(missing_ok=True)
        return False
    made.replace(root / LIBRARY)
    return True


if __name__ == "__main__":
    sys.exit(not compile_extension(Path(__file__).parent))
