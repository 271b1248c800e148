"""What the Telegram library says about its own cipher, which the worker does not use."""

import os
import subprocess
import sys

import pytest


@pytest.mark.parametrize("module", ["worker.telegram.client", "worker.sandbox.server"])
def test_without_tgcrypto_nobody_is_told_of_a_slow_cipher_that_is_not_used(tmp_path, module):
    (tmp_path / "tgcrypto.py").write_text("raise ImportError(__name__)\n")
    done = subprocess.run(
        [sys.executable, "-c", f"import {module}"],
        capture_output=True,
        text=True,
        env=os.environ | {"PYTHONPATH": str(tmp_path)},
    )
    assert (done.returncode, done.stderr) == (0, "")
