"""A Telegram to log in to with ``worker accounts``, and two numbers that it knows."""

import json
from dataclasses import dataclass

from worker_command import worker, worker_at_a_terminal

from worker.sandbox.admin_client import SandboxAdmin

# The second one has Premium and a password.
ADA, GRACE = "+10000000001", "+10000000002"
CODE, PASSWORD = "12345", "correct horse"


@dataclass
class Place:
    """A Telegram, a database, and what commands need to know about both."""

    admin: SandboxAdmin
    settings: dict[str, object]

    async def run(self, *arguments: str):
        return await worker("accounts", *arguments, **self.settings)

    def at_a_terminal(self, *arguments: str, answers: tuple[str, ...] = ()) -> tuple[int, str]:
        """Run the command in a terminal of its own, and type an answer at each question."""
        ended = worker_at_a_terminal("accounts", *arguments, answers=answers, **self.settings)
        return ended.code, ended.out

    async def states(self) -> dict[str, str]:
        """Every account's, by the last two digits of its number."""
        listed = json.loads((await self.run("list", "--json")).out)
        return {account["phone"][-2:]: account["state"] for account in listed}
