"""Moves one document down and up in a process of its own, and says what that took. Run by test_memory.py."""

import asyncio
import hashlib
import json
import re
import sys
from pathlib import Path

sys.path += [str(Path(__file__).parents[1] / "sandbox"), str(Path(__file__).parents[2])]

from running_sandbox import RunningSandbox
from transfer_bench import open_desk


async def main(given):
    sandbox = RunningSandbox(None, [], given["facts"])
    async with open_desk(sandbox, given["phone"], Path(given["folder"]), deadline=30) as desk:
        source = desk.folder / "source"
        posted = await sandbox.admin.post_document(desk.channel_id, source, "a.zip")
        digest = await desk.download({**posted, "size": given["size"]})
        sent = await desk.publish(desk.folder / "part-0")
    with source.open("rb") as file:
        assert digest == sent == hashlib.file_digest(file, "sha256").hexdigest()
    sys.stdout.write(json.dumps({"peak": _peak_bytes()}) + "\n")


def _peak_bytes():
    """Our own: what getrusage says counts the process that started this one, too."""
    status = Path("/proc/self/status").read_text(encoding="ascii")
    return int(re.search(r"VmHWM:\s+(\d+) kB", status)[1]) * 1024


asyncio.run(main(json.loads(sys.argv[1])))
