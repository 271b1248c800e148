"""A fleet that has something in every section, made of rows as the database would give them."""

from dataclasses import replace
from datetime import UTC, datetime
from uuid import UUID

from worker.domain.calls import Block
from worker.domain.pauses import Pause
from worker.status.facts import Facts
from worker.store.overview import Scanned, WaitingSet
from worker.store.progress import SetUnderWay
from worker.store.restrictions import EscalationRow, MethodCalls, WidenedPace
from worker.store.roster import RosterAccount, RosterWorker

NAS, SHED = UUID(int=1), UUID(int=2)
AT = datetime(2026, 3, 1, 14, 3, 22, tzinfo=UTC)
SILENT_AFTER = 30.0

ADA = RosterAccount(1, "+10000000001", "Ada", "ada", True, "ready", None, NAS)
GRACE = RosterAccount(2, "+10000000002", "Grace", None, False, "ready", None, NAS)
ALAN = RosterAccount(3, "+4930123456", "", None, False, "needs_login", "AUTH_KEY_UNREGISTERED", None)
NAS_WORKER = RosterWorker(NAS, "nas", 4711, "0.1.0", 9240.0, 45_200_000, 2.0)
UPLOADING = SetUnderWay(
    7,
    1,
    "Workshop - Kit 07.zip",
    "Model Archive",
    "upload",
    630_000_000,
    1_000_000_000,
    600_000_000,
    60.0,
    0.4,
)
FETCHING = SetUnderWay(
    8, 2, "Castle.part1.rar", "Print Vault", "fetch", 1_200_000_000, 3_900_000_000, 900_000_000, 100.0, 0.2
)


def quiet_fleet() -> Facts:
    """One worker, two accounts, everything done."""
    return Facts(
        at=AT,
        accounts=[ADA, GRACE],
        workers=[NAS_WORKER],
        scanned=Scanned(2, 2, 120),
        counts={"indexed": 10, "duplicate": 4},
    )


def busy_fleet() -> Facts:
    """Something in every section."""
    return replace(
        quiet_fleet(),
        accounts=[ADA, GRACE, ALAN],
        workers=[NAS_WORKER, RosterWorker(SHED, "shed", 99, "0.1.0", 400.0, 30_000_000, 75.0)],
        calls=[
            MethodCalls("upload.saveBigFilePart", 1240),
            MethodCalls("messages.getHistory", 68),
            MethodCalls("messages.sendMedia", 3),
        ],
        failed_calls=2,
        blocks=[
            Block(1, "messages.getHistory", 0, 392.0, 420),
            Block(2, "messages.sendMedia", 1005, 45.0, 60),
        ],
        escalations=[EscalationRow(1, "messages.getHistory", 3, 300, 700.0)],
        widened=[WidenedPace(1, "messages.getHistory", 3.4)],
        scanned=Scanned(45, 128, 12_847),
        counts=dict(indexed=1024, duplicate=12, claimed=2, ready=3, failed=1, collecting=2),  # noqa: C408 - one line
        under_way=[UPLOADING, FETCHING],
        held_back=[
            WaitingSet(11, "Tower.zip", "Model Archive", "ready", "the same content is being published", 4.0)
        ],
        held_back_count=1,
        given_up=[WaitingSet(12, "Broken.7z", "Print Vault", "failed", "Broken.7z has 0 bytes, not 12", 0.0)],
        pauses=[Pause(channel=5, seconds_left=7100.0, by="eve@nas"), Pause(account=2, by="eve@nas")],
        channel_titles={5: "Print Vault"},
    )
