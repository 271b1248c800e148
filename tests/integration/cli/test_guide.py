"""The guide's commands, run in their order by somebody who has nothing but the guide."""

import asyncio
import os
import re
import shlex
import zipfile
from pathlib import Path

import pytest
from loopback_telegram import Telegram
from worker_processes import Workers

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
    admin = SandboxAdmin.announced(running.facts)
    await admin.create_account(PHONE, "Ada")
    source = (await admin.create_channel("Print Vault", members=[PHONE], username="printvault"))["channel_id"]
    await admin.create_channel("My Library", admins=[PHONE], username="mylibrary")
    archive = tmp_path / "castle.zip"
    with zipfile.ZipFile(archive, "w") as made:
        made.writestr("castle/tower.stl", os.urandom(50_000))
    await admin.post_document(source, archive, archive.name)
    yield running
    running.close()


async def test_the_commands_of_the_guide_do_what_it_says(tmp_path, telegram, database_url):
    code = tmp_path / "code"
    code.write_text("12345")
    settings = {
        "WORKER_DATABASE_URL": database_url,
        "WORKER_SECRET_KEY": "A" * 43 + "=",
        "WORKER_DATA_DIR": str(tmp_path / "data"),
        "WORKER_TELEGRAM__API_ID": "1",
        "WORKER_TELEGRAM__API_HASH": "0" * 32,
        "WORKER_TELEGRAM__HOST": telegram.facts["host"],
        "WORKER_TELEGRAM__PORT": str(telegram.facts["port"]),
        "WORKER_TELEGRAM__PUBLIC_KEY": telegram.facts["public_key"],
        "WORKER_RATE_LIMITS__PROFILE": "relaxed",
    }
    said = {}
    workers = Workers(tmp_path)
    for arguments in commands():
        # Nobody sits at the terminal to type the code.
        typed = ["--code-file", str(code)] if arguments[:2] == ["accounts", "add"] else []
        where = [str(tmp_path / each) if each == "restored" else each for each in arguments]
        ended = await asyncio.to_thread(workers.wait, workers.start(*where, *typed, env=settings))
        said[" ".join(arguments)] = workers.logs[-1].read_text()
        assert ended == {"exit": 0}, f"worker {' '.join(arguments)}: {workers.logs[-1].read_text()}"
    assert "castle.zip" in said["packages list"]
    assert "castle.zip" in said["packages search castle"]
    assert (tmp_path / "restored" / "castle.zip").read_bytes() == (tmp_path / "castle.zip").read_bytes()
