"""What others post, edit and delete where the fleet reads."""

from pathlib import Path

from others import Others, deed, marker_line

NAMES = (
    "x" * 9000 + ".zip",
    "1" * 40 + "x - kit.zip",
    "\u202egnp.exe\u202c.zip",
    "../../etc/passwd.zip",
    "a\x1b]0;owned\x07\r\nb.zip",
    "name.zip" + "\u0301" * 200 + ".zip",
    "Kit - Title" + " " * 300 + ".zip",
    "\u2066\u2067.zip",
    "(1)(2)(3)(4)(5)(6)(7)(8)(9)" * 20 + ".zip",
    "CON.zip",
)


@deed("an archive is posted")
async def _post(others: Others, number: int) -> None:
    path = others.archive(number)
    await others.world.admin.post_document(others.source(number), path, path.name)


@deed("an archive is posted in both sources")
async def _post_twice(others: Others, number: int) -> None:
    path = others.archive(number)
    for source in others.world.sources[:2]:
        await others.world.admin.post_document(source, path, f"{source} {path.name}")


@deed("an archive is posted under a hostile name")
async def _post_hostile(others: Others, number: int) -> None:
    path = others.archive(number)
    await others.world.admin.post_document(others.source(number), path, NAMES[number % len(NAMES)])


@deed("an archive is posted with a marker in its caption")
async def _post_marked(others: Others, number: int) -> None:
    path = others.archive(number)
    standing = await others.ours()
    caption = standing[number % len(standing)]["text"] if standing else marker_line(bytes(32), 10**20, -1)
    await others.world.admin.post_document(others.source(number), path, path.name, caption=caption)


@deed("a set of three parts is posted")
async def _post_volumes(others: Others, number: int) -> None:
    parts = others.volumes(number)
    await others.world.post_files(others.source(number), parts[number % 3 :] + parts[: number % 3])


@deed("two of three parts are posted, the third comes later")
async def _post_two(others: Others, number: int) -> None:
    parts = others.volumes(number)
    late = parts.pop(number % 3)
    await others.world.post_files(others.source(number), parts)
    others.later.append((others.source(number), late))


@deed("a set comes with a damaged part, which is posted again intact")
async def _post_damaged(others: Others, number: int) -> None:
    parts = others.volumes(number)
    intact = parts[number % 3].read_bytes()
    await _post_as_damaged(others, number, parts)
    parts[number % 3].write_bytes(intact)
    others.later.append((others.source(number), parts[number % 3]))


async def _post_as_damaged(others: Others, number: int, parts: list[Path]) -> None:
    # Its headers are gone: no proof of the set comes by that.
    parts[number % 3].write_bytes(bytes(parts[number % 3].stat().st_size))
    await others.world.post_files(others.source(number), parts)


@deed("a file is swapped by an edit")
async def _swap(others: Others, number: int) -> None:
    source = others.source(number)
    files = await others.files_of(source)
    if files:
        await _swap_one(others, number, source, files[number % len(files)]["id"])


@deed("an old file is swapped by an edit, and a hundred messages follow")
async def _swap_in_a_gap(others: Others, number: int) -> None:
    source = others.source(number)
    files = await others.files_of(source)
    await others.world.admin.fill_channel(source, 70)
    if files:
        await _swap_one(others, number, source, files[0]["id"])
    await others.world.admin.fill_channel(source, 70)


async def _swap_one(others: Others, number: int, source: int, message_id: int) -> None:
    # Posted before in a channel that nobody of the fleet reads.
    attic = (await others.world.admin.create_channel("Attic"))["channel_id"]
    path = others.archive(number)
    posted = await others.world.admin.post_document(attic, path, path.name)
    await others.world.admin.replace_document(source, message_id, posted["document_id"])


@deed("a message is deleted")
async def _delete(others: Others, number: int) -> None:
    source = others.source(number)
    files = await others.files_of(source)
    if files:
        await others.world.admin.delete_messages(source, [files[number % len(files)]["id"]])


@deed("people chat")
async def _chat(others: Others, number: int) -> None:
    await others.world.admin.fill_channel(others.source(number), 1 + number % 40)


@deed("the source forbids copying")
async def _protect(others: Others, number: int) -> None:
    await others.world.admin.set_noforwards(others.source(number), noforwards=True)


@deed("the source allows copying again")
async def _allow(others: Others, number: int) -> None:
    await others.world.admin.set_noforwards(others.source(number), noforwards=False)


@deed("a topic is opened and holds an archive")
async def _open_topic(others: Others, number: int) -> None:
    if others.forum:
        topic = (await others.world.admin.create_topic(others.forum, f"Topic {number}"))["topic_id"]
        others.topics.append(topic)
        path = others.archive(number)
        await others.world.admin.post_document(others.forum, path, path.name, topic_id=topic)


@deed("a topic vanishes")
async def _drop_topic(others: Others, number: int) -> None:
    if others.topics:
        topic = others.topics.pop(number % len(others.topics))
        await others.world.admin.do("delete_topic", channel_id=others.forum, topic_id=topic)
