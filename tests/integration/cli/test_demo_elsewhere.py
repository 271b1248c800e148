"""The demo on a fleet, a database and a loopback Telegram that run by themselves, as docker-compose.demo.yml has them."""

import asyncio
import json
import os
import signal
from pathlib import Path

import pytest
import yaml
from loopback_telegram import Telegram
from test_demo import DUPLICATES, PUBLISHED
from worker_command import worker
from worker_processes import Workers

_COMPOSE = Path(__file__).parents[3] / "docker-compose.demo.yml"


@pytest.fixture
def telegram(tmp_path):
    running = Telegram(tmp_path / "telegram")
    yield running
    running.close()


@pytest.fixture
def settings(tmp_path, telegram, database_url):
    """What the compose file gives the workers, with the places of this test."""
    given = yaml.safe_load(_COMPOSE.read_text())["services"]["worker"]["environment"]
    return given | {
        "WORKER_DATABASE_URL": database_url,
        "WORKER_SECRET_KEY": "A" * 43 + "=",
        "WORKER_DATA_DIR": str(tmp_path / "data"),
        "WORKER_TELEGRAM__API_HASH": "0" * 32,
        "WORKER_TELEGRAM__HOST": telegram.facts["host"],
        "WORKER_TELEGRAM__PORT": str(telegram.facts["port"]),
        "WORKER_TELEGRAM__PUBLIC_KEY": telegram.facts["public_key"],
    }


async def test_a_fleet_that_runs_by_itself_publishes_what_was_staged_and_watching_ends_with_the_proof(
    tmp_path, telegram, settings
):
    port = ("--admin-port", str(telegram.facts["admin_port"]))
    own = {name.removeprefix("WORKER_"): value for name, value in settings.items()}
    for _ in range(2):
        staged = await worker("demo", "stage", *port, **own)
        assert (staged.code, staged.out) == (0, "16 archives are posted in 4 channels.\n"), staged.err
    impatient = await worker("demo", "watch", *port, "--minutes", "0.02", **own)
    assert impatient.code != 0
    assert "the fleet is not done after 1 s" in impatient.err
    workers = Workers(tmp_path)
    pid = workers.start("run", env=settings)
    try:
        watched = await worker("demo", "watch", *port, "--json", **own)
    finally:
        os.kill(pid, signal.SIGTERM)
        await asyncio.to_thread(workers.wait, pid)
    assert watched.code == 0, watched.err
    done = json.loads(watched.out)
    assert done["ledger"]["message_sets"] == done["ledger"]["unique_contents"] == PUBLISHED
    assert (done["published"], done["duplicates"], len(done["waiting"])) == (PUBLISHED, DUPLICATES, 1)


async def test_a_stage_that_was_begun_and_not_finished_is_refused_with_what_to_do(telegram, settings):
    (data := Path(settings["WORKER_DATA_DIR"])).mkdir()
    (data / "stage.begun").touch()
    own = {name.removeprefix("WORKER_"): value for name, value in settings.items()}
    refused = await worker("demo", "stage", "--admin-port", str(telegram.facts["admin_port"]), **own)
    assert refused.code != 0
    assert "begun here before and not finished" in refused.err
    assert "down --volumes" in refused.err


async def test_without_a_loopback_telegram_nothing_is_posted_anywhere(settings):
    own = {name.removeprefix("WORKER_"): value for name, value in settings.items()}
    del own["TELEGRAM__HOST"]
    refused = await worker("demo", "stage", **own)
    assert refused.code != 0
    assert "needs a loopback Telegram" in refused.err
