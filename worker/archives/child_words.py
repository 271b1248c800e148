"""What parsers say on their standard streams: a little of it goes into the log, and nothing to a terminal."""

from __future__ import annotations

import asyncio
import contextlib

from worker.log import get_logger

log = get_logger(__name__)
LINE = 300
MOST_LINES = 50
END_SECONDS = 1.0


class Words:
    """Reads a stream to its end. A parser that was taken over says what it likes, as often as it likes."""

    def __init__(self, stream: asyncio.StreamReader) -> None:
        self.last = ""
        self._lines = 0
        self._task = asyncio.create_task(self._listen(stream), name="parsers' words")

    async def _listen(self, stream: asyncio.StreamReader) -> None:
        while said := await stream.read(4096):
            for line in said.decode(errors="replace").splitlines():
                self.last = line[:LINE]
                self._lines += 1
                if self._lines <= MOST_LINES:
                    log.warning("archives.parser_said", words=self.last)

    async def heard(self) -> None:
        """Once the process has ended; what it started may hold the stream a moment longer."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(END_SECONDS):
                await self._task
