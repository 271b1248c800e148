"""The guide's commands, run in their order by somebody who has nothing but the guide."""

import os
import re
import shlex
import zipfile
from pathlib import Path

import pytest
from worker_command import worker
from world import Telegram

from worker.sandbox.admin_client import SandboxAdmin

GUIDE = Path(__file__).parents[3] / "docs" / "guide.md"
PHONE = "+49301234567"


def commands() -> list[list[str]]:
    """What the guide has people type after the installation; lines for root and for Docker begin with #."""
    lines = re.findall(r"^\$ (.*)$", GUIDE.read_text(encoding="utf-8"), re.MULTILINE)
    return [shlex.split(line)[1:] for line in lines if line.startswith("worker ")]


def test_every_line_of_the_guide_is_either_ours_or_preparation():
    lines = re.findall(r"^\$ (.*)$", GUIDE.read_text(encoding="utf-8"), re.MULTILINE)
    others = {line.split()[0] for line in lines} - {"worker"}
    assert others == {"make", "export"}


@pytest.fixture
async def telegram(tmp_path):
    running = Telegram(tmp_path / "telegram")
    admin = SandboxAdmin(running.facts["host"], running.facts["admin_port"])
    await admin.create_account(PHONE, "Ada")
    source = (await admin.create_channel("Print Vault", members=[PHONE], username="printvault"))["channel_id"]
    await admin.create_channel("My Library", admins=[PHONE], username="mylibrary")
    archive = tmp_path / "castle.zip"
    with zipfile.ZipFile(archive, "w") as made:
        made.writestr("castle/tower.stl", os.urandom(50_000))
    await admin.post_document(source, archive, archive.name)
    yield running
    running.close()


@pytest.mark.timeout(240)
async def test_the_commands_of_the_guide_do_what_it_says(tmp_path, telegram, database_url):
    code = tmp_path / "code"
    code.write_text("12345")
    settings = {
        "database_url": database_url,
        "secret_key": "A" * 43 + "=",
        "data_dir": tmp_path / "data",
        "telegram__api_id": 1,
        "telegram__api_hash": "0" * 32,
        "telegram__host": telegram.facts["host"],
        "telegram__port": telegram.facts["port"],
        "telegram__public_key": telegram.facts["public_key"],
        "rate_limits__profile": "relaxed",
    }
    said = {}
    for arguments in commands():
        # Nobody sits at the terminal to type the code.
        typed = ["--code-file", str(code)] if arguments[:2] == ["accounts", "add"] else []
        ended = await worker(*arguments, *typed, cwd=tmp_path, **settings)
        assert ended.code == 0, f"worker {' '.join(arguments)}: {ended.err or ended.out}"
        said[" ".join(arguments)] = ended.out
    assert "castle.zip" in said["packages list"]
    assert "castle.zip" in said["packages search castle"]
    assert (tmp_path / "restored" / "castle.zip").read_bytes() == (tmp_path / "castle.zip").read_bytes()
