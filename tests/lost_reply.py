"""A database whose first commit, or first commit of one name, is applied, and whose answer to it is lost."""

import contextlib

from worker.errors import CommitUnknownError
from worker.store.database import Database


class LosesOneReply(Database):
    replies_to_lose = 1
    only = ""

    @contextlib.asynccontextmanager
    async def transaction(self, name):
        async with super().transaction(name) as connection:
            yield connection
        if self.replies_to_lose and name.startswith(self.only):
            self.replies_to_lose -= 1
            raise CommitUnknownError(f"the commit of {name} got no answer")
