"""A database whose first commit is applied, and whose answer to it is lost."""

import contextlib

from worker.errors import CommitUnknownError
from worker.store.database import Database


class LosesOneReply(Database):
    replies_to_lose = 1

    @contextlib.asynccontextmanager
    async def transaction(self, name):
        async with super().transaction(name) as connection:
            yield connection
        if self.replies_to_lose:
            self.replies_to_lose -= 1
            raise CommitUnknownError(f"the commit of {name} got no answer")
