"""A line to PostgreSQL on which the answer to one commit is lost."""

import asyncio

from breakable_line import BreakableLine
from postgres_place import reach


class LosesAReply(BreakableLine):
    """Cuts the connection in the place of the reply to the COMMIT of the first claim."""

    lost = 0

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        far_reader, far_writer = await reach(self._target)
        awaits_reply = False

        async def outward() -> None:
            nonlocal awaits_reply
            claims = False
            while data := await reader.read(65536):
                claims = claims or b"SET state = 'claimed'" in data
                awaits_reply = claims and not self.lost and b"COMMIT" in data
                far_writer.write(data)

        async def inward() -> None:
            while data := await far_reader.read(65536):
                if awaits_reply:
                    self.lost += 1
                    writer.transport.abort()
                    return
                writer.write(data)

        tasks = {asyncio.create_task(outward()), asyncio.create_task(inward())}
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        writer.close()
        far_writer.close()
