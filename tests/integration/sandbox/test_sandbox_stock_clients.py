"""Held to the truth by clients that know nothing of this server."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest
from client_environments import stock_client
from cryptography.hazmat.primitives import serialization
from running_sandbox import RunningSandbox

from worker.sandbox.public_key import fingerprint

CLIENTS = Path(__file__).parent / "clients"
SCENARIOS = {
    "telethon": "telethon_scenario.py",
    "kurigram": "pyrogram_scenario.py",
    "pyrogram": "pyrogram_scenario.py",
}
# The one is posted as a big file, of many parts; the other has two parts, which a cipher in Python takes ten seconds for.
TWELVE_MIB = 12 * 1024 * 1024 + 12345
TWO_PARTS = 600_000


async def walk(name: str, given: dict) -> dict:
    client = await asyncio.to_thread(stock_client, name)
    process = await asyncio.create_subprocess_exec(
        client.python,
        str(CLIENTS / SCENARIOS[name]),
        json.dumps({**given, "size": TWELVE_MIB if client.fast else TWO_PARTS}),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    output, trouble = await process.communicate()
    assert process.returncode == 0, trouble.decode()[-3000:]
    return json.loads(output)


def given_by(running: RunningSandbox, workdir: Path, phone: str, other: str, transport: str) -> dict:
    numbers = serialization.load_pem_public_key(
        Path(running.facts["public_key"]).read_bytes()
    ).public_numbers()
    return {
        **running.facts,
        "fingerprint": fingerprint(numbers.n, numbers.e),
        "code": "12345",
        "password": "correct horse",
        "phone": phone,
        "other_phone": other,
        "transport": transport,
        "workdir": str(workdir),
    }


def check(seen: dict) -> None:
    """Message 1 tells of the channel's creation, 2 is the text, 3 the file."""
    assert seen["update"] == "hello there"
    assert seen["downloaded"] == seen["uploaded"]
    assert seen["edited"] == "hello again"
    assert (seen["text"], seen["sent"]) == (2, 3)
    assert seen["listed"] == [3, 2, 1]
    assert seen["reversed"] == [1, 2, 3]
    assert seen["found"] == [3]
    assert seen["after_delete"] == [3, 1]
    assert "Archives" in seen["dialogs"]


@pytest.fixture(params=["0", "50"], ids=["no delay", "50 ms"])
def distant_sandbox(request, tmp_path):
    # An old client cannot name channels above 2^31.
    running = RunningSandbox.start("--rtt-ms", request.param, "--first-channel-id", "1500000001")
    yield running
    running.stop()


@pytest.mark.parametrize("transport", ["abridged", "intermediate"])
@pytest.mark.parametrize("name", ["telethon", "kurigram", "pyrogram"])
async def test_a_stock_client_does_everything(distant_sandbox, tmp_path, phone, other, name, transport):
    await distant_sandbox.admin.create_account(phone, "Safe", password="correct horse")
    check(await walk(name, given_by(distant_sandbox, tmp_path, phone, other, transport)))


@pytest.mark.parametrize(
    ("name", "transport"),
    # Telethon obfuscates in pure Python, at some kilobytes per second.
    [("telethon", "full"), ("kurigram", "padded"), ("kurigram", "obfuscated"), ("kurigram", "full")],
)
async def test_every_framing_carries_a_stock_client(sandbox, tmp_path, phone, other, name, transport):
    check(await walk(name, given_by(sandbox, tmp_path, phone, other, transport)))
