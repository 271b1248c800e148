"""A transport that writes into a list, and answers as the test says."""

import asyncio
from collections import defaultdict, deque


class LedgerTransport:
    """``ledger`` holds (time, verb, lane, message or payload) of every attempt; ``done`` of every success.

    ``answers`` gives, per verb, what the next attempts meet: an exception to raise, or an event to wait for.
    """

    def __init__(self, clock) -> None:
        self._clock = clock
        self._ids = iter(range(100, 100000))
        self.ledger: list[tuple] = []
        self.done: list[tuple] = []
        self.random_ids: list[int] = []
        self.cancelled: list[tuple] = []
        self.answers: dict[str, deque] = defaultdict(deque)
        self.busy: dict[object, int] = defaultdict(int)
        self.most_busy = 0

    def answer(self, verb: str, *answers) -> None:
        self.answers[verb].extend(answers)

    def wrote(self, verb: str) -> list:
        return [what for _, done, _, what in self.done if done == verb]

    def tried(self, verb: str) -> list:
        return [what for _, tried, _, what in self.ledger if tried == verb]

    def moments(self, verb: str) -> list[float]:
        return [at for at, tried, _, _ in self.ledger if tried == verb]

    async def send(self, lane, payload, random_id):
        self.random_ids.append(random_id)
        await self._attempt("send", lane, payload)
        return next(self._ids)

    async def edit(self, lane, message, payload):
        await self._attempt("edit", lane, (message, payload))

    def delete(self, lane, message):
        """Not a coroutine function: what it raises is raised before anything is awaited."""
        if self.answers["delete"] and isinstance(self.answers["delete"][0], Exception):
            self.ledger.append((self._clock.monotonic(), "delete", lane, message))
            raise self.answers["delete"].popleft()
        return self._attempt("delete", lane, message)

    async def _attempt(self, verb, lane, what):
        entry = (self._clock.monotonic(), verb, lane, what)
        self.ledger.append(entry)
        self.busy[lane] += 1
        self.most_busy = max(self.most_busy, self.busy[lane])
        try:
            answer = self.answers[verb].popleft() if self.answers[verb] else None
            if isinstance(answer, asyncio.Event):
                await answer.wait()
            elif isinstance(answer, BaseException):
                raise answer
        except asyncio.CancelledError:
            self.cancelled.append(entry)
            raise
        finally:
            self.busy[lane] -= 1
        self.done.append(entry)
