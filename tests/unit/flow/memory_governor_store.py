"""The governor's memory in this process: the rules of the database's, without a database."""

from dataclasses import dataclass, field

from worker.domain.calls import Admission, Block, FloodKind, Verdict
from worker.errors import RetryableError
from worker.flow.pacing import PaceState, charge, wait, widen


@dataclass
class MemoryGovernorStore:
    clock: object
    away: bool = False
    paces: dict = field(default_factory=dict)
    blocks: dict = field(default_factory=dict)
    floods: list = field(default_factory=list)
    lines: list = field(default_factory=list)
    counts: list = field(default_factory=list)
    trips: int = 0

    def _trip(self) -> None:
        if self.away:
            raise RetryableError("the database is away")
        self.trips += 1

    async def admit(self, call, buckets, adaptation):
        self._trip()
        now = self.clock.monotonic()
        for chat, reason in ((0, "flood"), (call.chat, "slow mode")):
            until, _ = self.blocks.get((call.account, call.method, chat), (now, 0))
            if until > now:
                return Admission(until - now, reason)
        wanted = [((call.account, buckets.name, 0), buckets.pace, "pace")]
        if buckets.chat_pace is not None:
            wanted.append(((call.account, buckets.name, call.chat), buckets.chat_pace, "chat pace"))
        for key, pace, reason in wanted:
            seconds = wait(pace, self.paces.get(key, PaceState()), now, adaptation)
            if seconds > 0:
                return Admission(seconds, reason)
        for key, pace, _ in wanted:
            self.paces[key] = charge(pace, self.paces.get(key, PaceState()), now, adaptation)
        return Admission()

    async def record_flood(self, report):
        self._trip()
        now, call, flood = self.clock.monotonic(), report.call, report.flood
        self.floods.append((now, call, flood))
        if flood.kind is FloodKind.PREMIUM:
            return Verdict(report.hold)
        hold, escalated = report.hold, False
        if flood.kind is FloodKind.FLOOD:
            rule = report.escalation
            recent = [
                at
                for at, other, kind in self.floods
                if (other.account, other.method, kind.kind) == (call.account, call.method, FloodKind.FLOOD)
                and at > now - rule.within
            ]
            escalated = len(recent) >= rule.count
            hold += rule.extra if escalated else 0
            key = (call.account, report.bucket, 0)
            self.paces[key] = widen(self.paces.get(key, PaceState()), now, report.adaptation)
        key = (call.account, call.method, call.chat if flood.kind is FloodKind.SLOWMODE else 0)
        until = max(now + hold, self.blocks.get(key, (0, 0))[0])
        self.blocks[key] = (until, flood.seconds)
        return Verdict(until - now, escalated)

    async def record_activity(self, rows, counts):
        self._trip()
        self.lines.extend(rows)
        self.counts.extend(counts)

    async def active_blocks(self):
        self._trip()
        now = self.clock.monotonic()
        return [
            Block(*key, until - now, seconds) for key, (until, seconds) in self.blocks.items() if until > now
        ]
