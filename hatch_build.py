"""Compiles the extension while the package is built or installed, where there is a compiler.

Without one, or for a processor that the source does not know, the package is complete all the same: the
worker falls back to tgcrypto, and `worker doctor` says which cipher is in use. `python hatch_build.py`
compiles in place.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

SOURCE = Path("worker/cipher/_ige.c")
# The stable ABI of 3.11: one library serves every Python from there on.
LIBRARY = Path("worker/cipher/_ige.abi3.so")
FLAGS = ("-O3", "-fPIC", "-shared", "-fvisibility=hidden", "-Wall", "-Wextra")


class ExtensionHook(BuildHookInterface):  # type: ignore[type-arg] # hatchling fills it in
    """Adds the library to the package if it could be made."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:  # noqa: ARG002 - hatchling's
        root = Path(self.root)
        if compile_extension(root):
            build_data["force_include"][str(root / LIBRARY)] = LIBRARY.as_posix()
            build_data["pure_python"] = False
            build_data["infer_tag"] = True


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
