"""Disk space that sets in flight have been promised."""

from sqlalchemy import BigInteger, Column, Index, Table, Text, text

from worker.store.schema.base import checked, metadata, now_column, reference, required

disk_reservations = Table(
    "disk_reservations",
    metadata,
    reference("set_id", "archive_sets", on_delete="CASCADE", kind=BigInteger, primary_key=True),
    required("volume", Text),
    Column("fence", BigInteger),
    checked("bytes", BigInteger, ">= 0", nullable=False),
    checked("written_bytes", BigInteger, ">= 0", nullable=False, server_default=text("0")),
    now_column("reserved_at"),
    Index("disk_reservations_volume", "volume"),
)
