"""The tables, as SQLAlchemy sees them. The migrations make them; a test proves that both agree."""

from worker.store.schema.base import metadata
from worker.store.schema.people import accounts, runs, settings, workers
from worker.store.schema.published import package_files, package_parts, packages, upload_parts, uploads
from worker.store.schema.sessions import account_keys, peers
from worker.store.schema.sources import archive_sets, channels, memberships, scan_cursors, source_files

__all__ = [
    "account_keys",
    "accounts",
    "archive_sets",
    "channels",
    "memberships",
    "metadata",
    "package_files",
    "package_parts",
    "packages",
    "peers",
    "runs",
    "scan_cursors",
    "settings",
    "source_files",
    "upload_parts",
    "uploads",
    "workers",
]
