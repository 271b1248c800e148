"""What strangers and foreign administrators do where the fleet publishes."""

import hashlib

from others import STRANGER, Others, deed, marker_line

from worker.domain.marker import find_marker


@deed("a stranger marks a file as an archive of a source")
async def _forge(others: Others, number: int) -> None:
    source = others.source(number)
    files = await others.files_of(source)
    if not files:
        return
    named = files[number % len(files)]
    # Either the true hash of what is posted there, or any; size and bytes are the stranger's.
    digest = bytes.fromhex(named["sha256"]) if number % 2 else hashlib.sha256(b"any").digest()
    line = marker_line(digest, source, named["id"], document=named["document_id"])
    if not number % 3:
        # With a code, which can only be guessed.
        line = line.replace("af1 ", "af2 ").replace(" kit.zip", " AAAAAAAAAAAAAAAA kit.zip")
    await others.as_stranger(others.scrap(number), line)


@deed("a stranger marks a file with the marker of one of ours")
async def _imitate(others: Others, number: int) -> None:
    standing = await others.ours()
    marker = find_marker(standing[number % len(standing)]["text"]) if standing else None
    if marker is not None:
        await others.as_stranger(
            others.scrap(number, marker.length), standing[number % len(standing)]["text"]
        )


@deed("a stranger sends one of ours again, caption and all")
async def _resend(others: Others, number: int) -> None:
    standing = await others.ours()
    if standing:
        one = standing[number % len(standing)]
        posted = await others.world.admin.repost(
            others.world.destination, one["document_id"], caption=one["text"], by=STRANGER
        )
        others.strangers[posted["message_id"]] = (one["text"], one["sha256"])


@deed("a stranger writes a marker beyond all numbers")
async def _exaggerate(others: Others, number: int) -> None:
    line = marker_line(hashlib.sha256(str(number).encode()).digest(), 10**20, 10**15, document=10**25)
    await others.as_stranger(others.scrap(number), line)


@deed("a stranger chats")
async def _chat_there(others: Others, number: int) -> None:
    await others.world.admin.post_text(others.world.destination, f"hello {number}", by=STRANGER)


@deed("a foreign administrator deletes one of ours")
async def _delete_one(others: Others, number: int) -> None:
    standing = await others.ours()
    if standing:
        await _take_away(others, [standing[number % len(standing)]["id"]])


@deed("a foreign administrator deletes all of ours")
async def _delete_all(others: Others, number: int) -> None:
    await _take_away(others, [message["id"] for message in await others.ours()])


async def _take_away(others: Others, ids: list[int]) -> None:
    others.deleted |= set(ids)
    await others.world.admin.delete_messages(others.world.destination, ids)


@deed("a foreign administrator edits the caption of one of ours")
async def _edit_ours(others: Others, number: int) -> None:
    standing = await others.ours()
    if standing:
        one = standing[number % len(standing)]
        others.edited.add(one["id"])
        await others.world.admin.edit_caption(others.world.destination, one["id"], "nice")
