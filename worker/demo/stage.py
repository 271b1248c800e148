"""What the demo finds at its Telegram: two accounts, channels, postings."""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from worker.demo.samples import Sample, make_photo, make_samples
from worker.demo.world import notes_file

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from worker.demo.telegram import Telegram
    from worker.sandbox.admin_client import SandboxAdmin

PHONES = {"+10000000001": "Ada", "+10000000002": "Grace"}
PREMIUM = "+10000000001"
# The part that somebody posts late, by its position in the set, and the one that nobody ever posts.
_LATE = ("7z slices", 1)
_NEVER = ("rar set with a hole", 1)


@dataclass(frozen=True, slots=True)
class Stage:
    """The channels of the demo by their Telegram ids, and the archives that are posted in them."""

    sources: tuple[int, ...]
    destination: int
    vault: int
    samples: dict[str, Sample]

    @property
    def publishable(self) -> list[Sample]:
        """What has to be at the destination in the end: all but the protected one and the one with a hole."""
        return [sample for name, sample in self.samples.items() if name not in ("protected", _NEVER[0])]


async def build(telegram: Telegram, folder: Path) -> Stage:
    """Make accounts, channels and postings; the same ones are found again when the demo runs again."""
    notes, archives = notes_file(folder), folder / "archives"
    if notes.exists():
        known = json.loads(notes.read_text(encoding="utf-8"))
        samples = {
            name: Sample(tuple(archives / file for file in files)) for name, files in known["samples"].items()
        }
        return Stage(tuple(known["sources"]), known["destination"], known["vault"], samples)
    samples = await asyncio.to_thread(make_samples, archives)
    stage = await _Builder(telegram.admin, samples, make_photo(archives)).build()
    written = {
        "sources": stage.sources,
        "destination": stage.destination,
        "vault": stage.vault,
        "samples": {name: [file.name for file in sample.files] for name, sample in samples.items()},
    }
    unfinished = notes.with_suffix(".unfinished")
    unfinished.write_text(json.dumps(written), encoding="utf-8")
    unfinished.replace(notes)
    return stage


async def post_late_part(telegram: Telegram, stage: Stage) -> bool:
    """Post the part that was missing, once; whether it was missing still."""
    name, position = _LATE
    file = stage.samples[name].files[position]
    if file.name in {message["file_name"] for message in await telegram.admin.messages(stage.vault)}:
        return False
    await telegram.admin.post_document(stage.vault, file, file.name, caption="here is the part I forgot")
    return True


@dataclass(frozen=True, slots=True)
class _Builder:
    admin: SandboxAdmin
    samples: dict[str, Sample]
    photo: Path

    async def build(self) -> Stage:
        for phone, name in PHONES.items():
            await self.admin.create_account(phone, name, premium=phone == PREMIUM)
        models = await self._channel("Model Archive")
        vault = await self._channel("Print Vault")
        forum = await self._channel("Maker Forum", broadcast=False, forum=True)
        closed = await self._channel("Closed Press", noforwards=True)
        destination = await self._channel("Library", admins=list(PHONES))
        first_kit = await self._fill_models(models)
        await self._fill_vault(vault, first_kit)
        await self._fill_forum(forum)
        await self._post(closed, "protected")
        return Stage((models, vault, forum, closed), destination, vault, self.samples)

    async def _channel(self, title: str, **options: Any) -> int:
        if "admins" not in options:
            options["members"] = list(PHONES)
        return int((await self.admin.create_channel(title, **options))["channel_id"])

    async def _fill_models(self, channel: int) -> int:
        """Kits (one of them twice), a 7z and its picture in an album, a RAR set in another, a large file."""
        (first,) = await self._post(channel, "kit 1", caption="#starter the first kit")
        for number in range(2, 5):
            await self._post(channel, f"kit {number}", caption=f"#kits no. {number}")
            await self.admin.post_text(channel, "Enjoy!")
        await self.admin.post_photo(channel, self.photo, grouped_id=71)
        await self._post(channel, "7z", grouped_id=71)
        await self._post(channel, "rar set", grouped_id=72)
        await self._post(channel, "oversized")
        await self._post(channel, "kit 2", caption="once more, for those who missed it")
        return first

    async def _fill_vault(self, channel: int, first_kit: int) -> None:
        """The same kits once more, one of them by reference, and sets that are not whole."""
        await self.admin.repost(channel, first_kit)
        for name in ("kit 3", "kit 4", "kit 5", "encrypted", "corrupt"):
            await self._post(channel, name)
        for name, missing in (_LATE, _NEVER):
            files = self.samples[name].files
            await self._post_files(channel, files[:missing] + files[missing + 1 :])

    async def _fill_forum(self, channel: int) -> None:
        lamps = (await self.admin.create_topic(channel, "Lamps"))["topic_id"]
        clocks = (await self.admin.create_topic(channel, "Clocks"))["topic_id"]
        await self._post(channel, "lamp", topic_id=lamps)
        await self._post(channel, "tar", topic_id=clocks)
        await self._post(channel, "kit 5", topic_id=clocks)
        await self._post(channel, "kit 6")

    async def _post(self, channel: int, name: str, **options: Any) -> list[int]:
        return await self._post_files(channel, self.samples[name].files, **options)

    async def _post_files(self, channel: int, files: Iterable[Path], **options: Any) -> list[int]:
        posted = [await self.admin.post_document(channel, file, file.name, **options) for file in files]
        return [int(each["document_id"]) for each in posted]
