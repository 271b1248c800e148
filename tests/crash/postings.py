"""Archives in several files, and what the ledger says was posted of them."""

import io
import zipfile
from collections.abc import Iterable
from pathlib import Path

from worker.domain.archive_set import PostedFile
from worker.domain.grouping import group
from worker.sandbox.admin_client import SandboxAdmin


def cut_zip(path: Path, count: int, content: bytes) -> list[Path]:
    """A zip that holds ``content``, cut into files named after ``path`` with .001 and so on."""
    whole = io.BytesIO()
    with zipfile.ZipFile(whole, "w") as archive:
        archive.writestr("data.bin", content)
    data = whole.getvalue()
    step = -(-len(data) // count)
    parts = [path.with_name(f"{path.name}.{number:03d}") for number in range(1, count + 1)]
    for number, part in enumerate(parts):
        part.write_bytes(data[number * step : (number + 1) * step])
    return parts


async def posted_sets(admin: SandboxAdmin, sources: Iterable[int]) -> list[tuple[str, ...]]:
    """Every set that the sources hold without a hole, as the hashes of its parts in order."""
    found = []
    for source in sources:
        messages = [message for message in await admin.messages(source) if message["document_id"]]
        hashes = {message["id"]: message["sha256"] for message in messages}
        sets = group(_posted(message) for message in messages).sets
        found += [tuple(hashes[part.message_id] for part in each.parts) for each in sets if each.gapless]
    return found


def _posted(message: dict) -> PostedFile:
    return PostedFile(
        message_id=message["id"],
        document_id=message["document_id"],
        file_name=message["file_name"],
        size=message["size"],
        date=message["date"],
        poster_id=message["user_id"],
        album_id=message["grouped_id"],
        reply_to=message["reply_to"],
        topic_id=message["topic_id"] or 1,
    )
