"""Memory does not grow with the size of a file."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from transfer_bench import MIB

# `make soak` moves 3 GiB.
SIZE = int(os.environ.get("SOAK_MIB", "512")) * MIB


@pytest.mark.timeout(1800)
def test_a_large_transfer_stays_under_250_mib_resident(shared_telegram, tmp_path):
    with (tmp_path / "source").open("wb") as file:
        # Not all alike, so that parts in the wrong place are noticed, and quickly made.
        block = os.urandom(MIB - 8)
        for number in range(SIZE // MIB):
            file.write(number.to_bytes(8, "big") + block)
    given = {
        "facts": shared_telegram.facts,
        "phone": "+49899999",
        "folder": str(tmp_path),
        "size": SIZE,
    }
    script = Path(__file__).with_name("transfer_process.py")
    root = Path(__file__).parents[3]
    done = subprocess.run(
        [sys.executable, str(script), json.dumps(given)],
        cwd=root,
        env={**os.environ, "PYTHONPATH": str(root)},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout.splitlines()[-1])["peak"] < 250 * MIB
