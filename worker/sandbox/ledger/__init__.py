"""What the loopback Telegram remembers: one SQLite file and plain blob files in one state directory.

Everything here is durable against ``kill -9`` of the server. One module owns each group of tables and every
query on it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from worker.sandbox.ledger.accounts import Accounts
from worker.sandbox.ledger.blobs import Blobs
from worker.sandbox.ledger.channels import Channels
from worker.sandbox.ledger.database import Database
from worker.sandbox.ledger.documents import Documents
from worker.sandbox.ledger.floods import Floods
from worker.sandbox.ledger.folders import Folders
from worker.sandbox.ledger.journal import Journal
from worker.sandbox.ledger.keys import Keys
from worker.sandbox.ledger.messages import Messages

if TYPE_CHECKING:
    from pathlib import Path


class Ledger:
    """All tables of one state directory."""

    def __init__(self, directory: Path, first_channel_id: int) -> None:
        self.db = Database(directory / "ledger.sqlite")
        self.blobs = Blobs(directory)
        self.keys = Keys(self.db)
        self.accounts = Accounts(self.db)
        self.channels = Channels(self.db, first_channel_id)
        self.messages = Messages(self.db)
        self.documents = Documents(self.db)
        self.folders = Folders(self.db)
        self.journal = Journal(self.db)
        self.floods = Floods(self.db)

    def close(self) -> None:
        self.db.close()
