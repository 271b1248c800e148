"""What ``worker run --once`` says at its end."""

from worker.cli.working import Worked
from worker.store.overview import WaitingSet


def test_what_waits_is_named_with_its_reason_and_when_it_goes_on(capsys):
    waiting = [
        WaitingSet(1, "One.zip", "Vault", "ready", "busy elsewhere", 14.2),
        WaitingSet(2, "Two.zip", "Vault", "ready", "", 0.0),
    ]
    Worked([], {"ready": 2}, waiting).print()
    assert capsys.readouterr().out.splitlines() == [
        "sets: 2 ready",
        "  One.zip in Vault: ready, again in 14s — busy elsewhere",
        "  Two.zip in Vault: ready — next in line",
    ]
