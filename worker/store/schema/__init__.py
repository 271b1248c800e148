"""The tables, as SQLAlchemy sees them. The migrations make them; a test proves that both agree."""

from worker.store.schema.base import metadata
from worker.store.schema.disk import disk_reservations
from worker.store.schema.flow_control import (
    api_activity,
    call_paces,
    escalations,
    flood_wait_state,
    host_pauses,
    rate_limits,
)
from worker.store.schema.library import (
    messages_set_aside,
    package_originals,
    previews,
    request_chunks,
    requests,
    source_photos,
)
from worker.store.schema.people import accounts, runs, settings, workers
from worker.store.schema.published import (
    missing_packages,
    package_files,
    package_parts,
    packages,
    upload_parts,
    uploads,
)
from worker.store.schema.sessions import account_keys, account_secrets, peers
from worker.store.schema.sources import archive_sets, channels, memberships, scan_cursors, source_files
from worker.store.schema.status import account_progress

__all__ = [
    "account_keys",
    "account_progress",
    "account_secrets",
    "accounts",
    "api_activity",
    "archive_sets",
    "call_paces",
    "channels",
    "disk_reservations",
    "escalations",
    "flood_wait_state",
    "host_pauses",
    "memberships",
    "messages_set_aside",
    "metadata",
    "missing_packages",
    "package_files",
    "package_originals",
    "package_parts",
    "packages",
    "peers",
    "previews",
    "rate_limits",
    "request_chunks",
    "requests",
    "runs",
    "scan_cursors",
    "settings",
    "source_files",
    "source_photos",
    "upload_parts",
    "uploads",
    "workers",
]
