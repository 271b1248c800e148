"""``worker recover --json`` in a world, and what it said."""

import json


async def recover(world, *argv) -> dict:
    ended = await world.run("recover", "--json", *argv)
    text = "\n" + world.workers.logs[-1].read_text()
    assert ended == {"exit": 0}, text
    # Logs and output share a file; the document is what begins with a line of its own.
    return json.loads(text[text.rindex("\n{\n") :])
