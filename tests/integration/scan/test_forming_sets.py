"""Sets of every kind, from postings as people make them to the destination."""

from collections import Counter

import pytest
import rar_samples  # noqa: F401 - registers its samples
import sevenzip_samples  # noqa: F401
import zip_samples  # noqa: F401
from sample_registry import build


async def _post(world, files, **options):
    return await world.post_files(world.sources[0], files, **options)


async def _published(world):
    """The parts of each published package in order, by their hashes."""
    rows = await world.fetch(
        "SELECT array_agg(message_id ORDER BY ordinal) AS ids FROM package_parts GROUP BY package_id"
    )
    hashes = {m["id"]: m["file_name"] for m in await world.admin.messages(world.destination)}
    return sorted([hashes[id_] for id_ in row["ids"]] for row in rows)


@pytest.mark.parametrize(
    "name", ["rar5_part_volumes", "rar4_legacy_volumes", "rar5_numbered", "sevenzip_numbered", "zip_spanned"]
)
async def test_p5_a_set_of_several_files_is_published_whole_and_in_order(world, run, sets, tmp_path, name):
    files = build(name, tmp_path / "sample").files
    await _post(world, sorted(files, key=lambda path: path.name, reverse=True))
    await run()
    (state,) = (await sets()).values()
    assert state == ("indexed", None, len(files))
    assert await _published(world) == [[path.name for path in files]]


async def test_p5_a_late_part_completes_the_set_after_a_restart(world, run, sets):
    first, second, third = world.make_volumes()
    await _post(world, [first, third])
    await run()
    assert (await sets())["volumes-1.zip"] == ("collecting", "waits for part 2 of 3: volumes-1.zip.002", 2)
    await _post(world, [second])
    await run()
    await world.check_invariants()


async def test_p5_a_missing_last_part_shows_in_the_bytes_alone(world, run, sets):
    *head, last = world.make_volumes()
    await _post(world, head)
    await run()
    assert (await sets())["volumes-1.zip"] == ("collecting", "waits for part 3 of 3: volumes-1.zip.003", 2)
    await _post(world, [last])
    await run()
    await world.check_invariants()


async def test_a_first_volume_that_looks_like_a_whole_archive_waits_for_the_rest(world, run, sets, tmp_path):
    first, *others = build("rar4_legacy_volumes", tmp_path / "sample").files
    await _post(world, [first])
    await run()
    assert (await sets())["a.rar"] == ("collecting", "waits for part 2 of 2: a.r00", 1)
    await _post(world, others)
    await run()
    assert (await sets())["a.rar"] == ("indexed", None, 1 + len(others))


async def test_p6_a_lone_continuation_is_kept_but_is_no_archive(world, run, tmp_path):
    report = tmp_path / "report.r12"
    report.write_bytes(b"not an archive")
    await _post(world, [report])
    await run()
    assert await world.fetch("SELECT 1 FROM archive_sets") == []
    assert len(await world.fetch("SELECT 1 FROM source_files WHERE file_name = 'report.r12'")) == 1


async def test_p7_two_postings_of_one_name_are_two_sets(world, run, tmp_path):
    parts = world.make_volumes()
    other = [path.with_name(f"other-{path.name}") for path in world.make_volumes()]
    for path, template in zip(other, world.make_volumes(), strict=True):
        path.write_bytes(template.read_bytes())
    names = [path.name for path in parts]
    for path, name in zip([*parts, *other], [*names, *names], strict=True):
        await world.admin.post_document(world.sources[0], path, name)
    await run()
    rows = await world.fetch("SELECT state, part_count FROM archive_sets")
    assert [(row["state"], row["part_count"]) for row in rows] == [("indexed", 3), ("indexed", 3)]
    assert await _published(world) == [names, names]


async def test_a_part_posted_again_after_its_set_was_published_changes_nothing(world, run):
    parts = world.make_volumes()
    await _post(world, parts)
    await run()
    await _post(world, [parts[1]])
    await run()
    states = Counter(row["state"] for row in await world.fetch("SELECT state FROM archive_sets"))
    assert states == {"indexed": 1, "collecting": 1}
    assert await _published(world) == [[path.name for path in parts]]
    reason = (await world.fetch("SELECT reason FROM archive_sets WHERE state = 'collecting'"))[0]["reason"]
    assert reason == "waits for part 1 of 2: volumes-1.zip.001"


async def test_a_part_that_was_deleted_before_its_set_was_proven_is_missed_by_name(world, run, sets):
    parts = world.make_volumes()
    ids = await _post(world, parts)
    await world.admin.add_rule("channels.getMessages", "error", code=500, text="INTERNAL", count=0)
    await run()
    assert "INTERNAL" in (await sets())["volumes-1.zip"][1]
    await world.admin.clear_rules()
    await world.admin.delete_messages(world.sources[0], [ids[0]])
    await run()
    assert (await sets())["volumes-1.zip"] == ("collecting", "waits for part 1 of 3: volumes-1.zip.001", 2)


async def test_files_that_an_earlier_version_only_wrote_down_form_sets(world, run):
    await _post(world, world.make_volumes())
    await run(faults="kill=db.proofs.next:before:1", ends={"signal": 9})
    await world.fetch("UPDATE source_files SET set_id = NULL, part_number = NULL, family = NULL")
    await world.fetch("DELETE FROM archive_sets")
    await world.until_buried()
    await run()
    await world.check_invariants()


async def test_spare_and_foreign_parts_keep_no_whole_archive_from_being_published(world, run, tmp_path):
    stray = tmp_path / "archive-1.z01"
    stray.write_bytes(b"left of something else")
    await _post(world, [stray])
    await world.post_archive(world.sources[0])
    volumes = build("rar5_part_volumes", tmp_path / "sample").files
    await _post(world, volumes)
    spare = f"a.part{len(volumes) + 1:02d}.rar"
    await world.admin.post_document(world.sources[0], volumes[1], spare)
    await run()
    assert await _published(world) == [[path.name for path in volumes], ["archive-1.zip"]]
    waiting = await world.fetch("SELECT name, reason FROM archive_sets WHERE state = 'collecting'")
    assert [row["name"] for row in waiting] == ["a.rar"]
    assert waiting[0]["reason"].startswith(f"waits for {len(volumes)} parts")
