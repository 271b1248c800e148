"""``worker packages`` and ``worker sets``: real processes on a real database."""

import json

import pytest
from fleet_rows import execute, insert_fleet
from worker_command import worker

_LIBRARY = """
    UPDATE packages SET metadata = 'complete', file_count = 2, creator = 'Ada Works', tags = '{models,castle}',
        source_channel_id = 1, file_name = 'Ada Works - Castle 100%.zip';
    INSERT INTO package_originals VALUES (1, 0, 'Castle.part1.rar', 5, 1001, 7, 70), (1, 1, 'Castle.part2.rar', 3, 1001, 8, 80);
    INSERT INTO package_parts VALUES (1, 0, 3, 11, 21, 'Castle.part1.rar', 0, 5), (1, 1, 3, 12, 22, 'Castle.part2.rar', 5, 3);
    INSERT INTO package_files (package_id, ordinal, path, size, is_dir) VALUES (1, 0, 'stl/', 0, true),
        (1, 1, 'stl/Tower_North.stl', 900, false), (1, 2, 'readme.txt', 12, false);
    INSERT INTO previews (package_id, kind, origin, jpeg) VALUES (1, 'posted', '55', 'jpeg bytes');
    INSERT INTO packages (content_hash, file_name, file_size, archive_type, dest_channel_id, dest_message_id, part_count)
    VALUES (sha256('two'), 'Second.zip', 1, 'zip', 3, 2, 1);
"""


@pytest.fixture
async def run(database_url):
    await insert_fleet(database_url)
    await execute(database_url, _LIBRARY)

    async def run(*arguments):
        return await worker(*arguments, database_url=database_url)

    return run


async def test_packages_are_listed_newest_first_with_what_is_known(run):
    ended = await run("packages", "list")
    assert (ended.code, ended.err) == (0, "")
    first, second = ended.out.splitlines()
    assert "Second.zip  (1 B, metadata pending)" in first
    assert "Castle 100%.zip  (1 B, 2 files, Ada Works, #models, #castle)" in second
    listed = json.loads((await run("packages", "list", "--json", "--tag", "Castle")).out)
    assert [(row["id"], row["creator"], row["source"]) for row in listed] == [
        (1, "Ada Works", "Model Archive")
    ]
    assert [row["id"] for row in json.loads((await run("packages", "list", "--json", "--pending")).out)] == [
        2
    ]
    assert [
        row["id"]
        for row in json.loads((await run("packages", "list", "--json", "--creator", "ada works")).out)
    ] == [1]


@pytest.mark.parametrize(
    ("words", "packages"),
    [
        (["castle"], [1]),
        (["100%"], [1]),
        (["CASTLE", "ada"], [1]),
        (["tower", ".stl"], [1]),
        (["tower_north"], [1]),
        (["tower-north"], []),
        (["castle", "tower"], []),
        (["zip"], [2, 1]),
    ],
)
async def test_a_search_finds_names_and_files_inside_by_every_word(run, words, packages):
    ended = await run("packages", "search", *words, "--json")
    assert [row["id"] for row in json.loads(ended.out)] == packages


async def test_a_search_shows_the_files_that_it_found(run):
    assert "          stl/Tower_North.stl\n" in (await run("packages", "search", "tower")).out
    short = await run("packages", "search", "ab")
    assert (short.code, short.err) == (
        2,
        "worker: 'ab' is too short to search for — give a word of at least 3 characters\n",
    )


async def test_a_package_is_shown_with_all_that_belongs_to_it(run, tmp_path):
    picture = tmp_path / "cover.jpg"
    ended = await run("packages", "show", "1", "--preview", str(picture))
    assert (ended.code, ended.err) == (0, "")
    for words in (
        "https://t.me/c/1003/11",
        "Castle.part2.rar",
        "in Model Archive on",
        "stl/Tower_North.stl",
        "preview posted: 55",
    ):
        assert words in ended.out
    assert picture.read_bytes() == b"jpeg bytes"
    assert (await run("packages", "show", "1", "--preview", str(picture))).code == 2
    document = json.loads((await run("packages", "show", "1", "--json")).out)
    assert [part["message_id"] for part in document["parts"]] == [11, 12]
    unknown = await run("packages", "show", "99")
    assert (unknown.code, unknown.err) == (2, "worker: there is no package 99 — see: worker packages list\n")


async def test_a_listing_that_failed_can_be_asked_for_again(run, database_url):
    await execute(
        database_url, "UPDATE packages SET metadata = 'failed', metadata_reason = 'broken' WHERE id = 2"
    )
    assert "worker packages reindex 2" in (await run("packages", "show", "2")).out
    assert (await run("packages", "reindex", "2")).code == 0
    assert [
        row["metadata"] for row in json.loads((await run("packages", "list", "--json", "--pending")).out)
    ] == ["pending"]


async def test_sets_are_listed_with_the_reason_why_each_waits(run):
    ended = await run("sets", "list")
    assert (ended.code, ended.err) == (0, "")
    assert "Two.zip in Model Archive: Ada on nas works on it" in ended.out
    assert "One.zip in Model Archive: package 1" in ended.out
    assert "it is broken — try again: worker sets retry 6" in ended.out
    waiting = json.loads((await run("sets", "list", "--waiting", "--json")).out)
    assert [row["name"] for row in waiting] == ["Six.zip", "Five.zip", "Four.zip", "Three.zip"]
    assert waiting[2]["why"].startswith("no account that is logged in reads Print Vault")
    only = json.loads((await run("sets", "list", "--channel", "@models", "--json")).out)
    assert [row["id"] for row in only] == [2, 1]


async def test_a_set_is_left_out_and_taken_up_again(run, database_url):
    await execute(
        database_url,
        "INSERT INTO source_files (channel_id, message_id, document_id, file_name, size, posted_at, set_id, part_number)"
        " VALUES (2, 9, 6, 'Six.zip', 1, now(), 6, 0)",
    )
    assert (await run("sets", "skip", "6", "--reason", "broken upload")).code == 0
    shown = (await run("sets", "show", "6")).out
    assert "skipped: left out by " in shown
    assert ": broken upload" in shown
    assert (await run("sets", "retry", "6")).code == 0
    document = json.loads((await run("sets", "show", "6", "--json")).out)
    assert (document["state"], document["reason"], document["attempts"]) == ("ready", None, 0)
    assert [part["file_name"] for part in document["parts"]] == ["Six.zip"]


@pytest.mark.parametrize(
    ("command", "said"),
    [
        (("skip", "2"), "set 2 is claimed: there is nothing to leave out"),
        (("retry", "1"), "set 1 cannot be tried again: indexed"),
        (("retry", "99"), "there is no set 99"),
        (("show", "99"), "there is no set 99"),
    ],
)
async def test_what_cannot_be_done_is_one_line(run, command, said):
    ended = await run("sets", *command)
    assert (ended.code, ended.out) == (2, "")
    assert ended.err.startswith(f"worker: {said}")
    assert ended.err.count("\n") == 1
