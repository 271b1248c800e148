"""Channels with a long history, made in one command."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from worker.sandbox.admin.commands import command
from worker.sandbox.admin.posting import post_document, post_text

if TYPE_CHECKING:
    from worker.sandbox.server import Sandbox


@command
async def fill_channel(
    sandbox: Sandbox,
    channel_id: int,
    count: int,
    *,
    text: str = "message {}",
    path: str | None = None,
    file_name: str = "archive-{}.zip",
    **options: Any,
) -> dict[str, Any]:
    """Post many messages; ``{}`` in the text and the file's name stands for their numbers, from 1 on."""
    ids = []
    for number in range(1, count + 1):
        said = text.format(number)
        if path is None:
            posted = await post_text(sandbox, channel_id, said, **options)
        else:
            name = file_name.format(number)
            posted = await post_document(sandbox, channel_id, path, name, caption=said, **options)
        ids.append(posted["message_id"])
    return {"message_ids": ids}
