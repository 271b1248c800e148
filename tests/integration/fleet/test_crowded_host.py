"""Telegram counts the connections of an address: what one process is told holds for all of its host."""

import asyncio
import sys
from pathlib import Path

import pytest
from hang_guard import HANG_SECONDS, until
from manual_clock import ManualClock

from worker.errors import RetryableError
from worker.fleet.crowded_host import share_once
from worker.store import host_pauses
from worker.telegram.client import Server, trust_public_key
from worker.telegram.crowding import Crowding
from worker.telegram.gateway import Gateway
from worker.telegram.tether import Tether

sys.path.insert(0, str(Path(__file__).parents[1] / "sandbox"))
from running_sandbox import RunningSandbox


@pytest.mark.usefixtures("standing_fleet_time")
async def test_what_one_process_is_told_holds_for_all_processes_of_its_host_and_for_no_other(database):
    told, beside, elsewhere = (Crowding(ManualClock().monotonic) for _ in range(3))
    told.refused()
    assert told.seconds_left() > 0, "at once, whatever the database says"
    for crowding, host in ((told, "nas"), (beside, "nas"), (elsewhere, "desk")):
        await share_once(database, crowding, host)
    assert beside.seconds_left() == 5
    assert elsewhere.seconds_left() == 0


@pytest.mark.usefixtures("standing_fleet_time")
async def test_a_host_that_is_refused_again_waits_longer_and_one_that_behaved_begins_anew(
    database, advance_fleet_time
):
    pauses = []
    for _ in range(8):
        pauses.append(round(await host_pauses.note_refusal(database, "nas")))
        assert round(await host_pauses.note_refusal(database, "nas")) == pauses[-1], "the same refusal"
        await advance_fleet_time(pauses[-1] + 1)
    assert pauses == [5, 10, 20, 40, 80, 160, 300, 300]
    await advance_fleet_time(600)
    assert round(await host_pauses.note_refusal(database, "nas")) == 5


async def test_a_refused_connection_keeps_the_others_of_the_process_from_being_made(tmp_path):
    running = RunningSandbox.start("--state", str(tmp_path / "telegram"), "--connections-per-address", "2")
    clock = ManualClock()
    crowding = Crowding(clock.monotonic)
    tether = Tether(wait_to_dial=crowding.seconds_left, crowded=crowding.refused)
    trust_public_key(Path(running.facts["public_key"]))
    server = Server(1, "0" * 32, running.facts["host"], running.facts["port"])
    keys = [await _agreed_key(server) for _ in range(5)]

    def gateway(deadline: float) -> Gateway:
        dc_id, key = keys.pop()
        made = Gateway(server, permission=None, deadline=deadline, tether=tether, dc_id=dc_id, auth_key=key)
        gateways.append(made)
        return made

    gateways: list[Gateway] = []
    try:
        for _ in range(2):
            await gateway(HANG_SECONDS).connect()
        refused = asyncio.create_task(gateway(HANG_SECONDS).connect())
        await until(_left(crowding))
        refused.cancel()
        await gateways[1].close()
        # There is room again, but nobody asks before the pause is over.
        with pytest.raises(RetryableError, match="takes no further connection from this host for 5 s"):
            await gateway(0.1).connect()
        await clock.advance(6)
        await gateway(HANG_SECONDS).connect()
    finally:
        for made in gateways:
            await made.close()
        running.stop()


def _left(crowding: Crowding):
    async def left():
        return crowding.seconds_left()

    return left


async def _agreed_key(server: Server) -> tuple[int, bytes]:
    gateway = Gateway(server, permission=None, deadline=HANG_SECONDS)
    await gateway.connect()
    await gateway.close()
    return gateway.session


@pytest.mark.usefixtures("standing_fleet_time")
async def test_a_clock_that_steps_back_prolongs_no_pause_of_a_host(database, advance_fleet_time):
    await host_pauses.note_refusal(database, "nas")
    await advance_fleet_time(-3600)
    assert await host_pauses.pause_left(database, "nas") == 0
    assert round(await host_pauses.note_refusal(database, "nas")) == 10, "it was refused a moment ago"
