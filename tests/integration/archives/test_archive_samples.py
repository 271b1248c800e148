"""Every sample through ``worker archives inspect --json``, compared with what other tools say."""

import json

import archive_samples as samples
import archive_tools
import kept_samples
import memory_sets
import other_archive_tools as other_tools
import pytest
import rarfile
from click.testing import CliRunner
from forked_parsers import parser_server
from skip_report import lacking

import worker.archives.nursery
from worker.cli.archives import archives

ENTRY_KEYS = ["path", "size", "compressed_size", "crc32", "modified", "is_dir", "encrypted"]
MADE_BY_TOOLS = {name: maker for name, maker in samples.MAKERS.items() if maker.tools}
# Who packs: the older rar beside the one of today, tar whatever compresses what it writes.
FAMILIES = sorted({maker.tools[-1].rstrip("6") for maker in MADE_BY_TOOLS.values()})
KEPT_BYTES = 3 * 2**20


@pytest.fixture(autouse=True)
def parsers_at_hand(monkeypatch):
    """Each command starts a process for the parsers, hundreds of them here."""
    monkeypatch.setattr(worker.archives.nursery, "start_process", parser_server().start_process)


def inspected(sample):
    """What ours says of a sample, which must be all that the sample declares."""
    result = CliRunner().invoke(archives, ["inspect", "--json", *map(str, sample.files)])
    assert result.exit_code == 0
    (found,) = json.loads(result.stdout)["sets"]
    assert found["complete"]
    assert found["missing"] == []
    open_questions = {"unverified": found["unchecked"], "unproven": found["unproven"]}
    assert set(found["marks"]) == sample.marks | {mark for mark, what in open_questions.items() if what}
    assert sorted(found["parts"]) == sorted(file.name for file in sample.files)
    assert all(list(entry) == ENTRY_KEYS for entry in found["entries"])
    listed = {entry["path"]: entry["size"] for entry in found["entries"]}
    assert len(listed) == len(found["entries"])
    assert listed == (sample.entries or {})
    return found


def compare(found, sample, listings, record_property):
    """No tool lists encrypted names without the password; else each lists what ours does, as far as it comes."""
    ours = sorted((entry["path"].rstrip("/"), entry["size"]) for entry in found["entries"])
    for tool, told in listings.items():
        theirs = [(path, dict(ours).get(path) if size is None else size) for path, size in told]
        if sample.entries is None:
            assert theirs == [], tool
        elif isinstance(told, other_tools.Partial):
            assert set(theirs) <= set(ours), tool
            record_property("not-read-by", tool)
        else:
            assert sorted(theirs) == ours, tool
            record_property("compared-with", tool)


@pytest.mark.parametrize("name", samples.MAKERS)
def test_every_sample_is_complete_and_its_listing_agrees_with_other_tools(name, tmp_path, record_property):
    """With the tools and libraries installed here, and for a kept sample with what the tools of its day said."""
    sample, maker = samples.build(name, tmp_path), samples.MAKERS[name]
    found = inspected(sample)
    if maker.tools:
        compare(found, sample, kept_listings(name), record_property)
    if sample.entries is not None:
        live = other_tools.listings(maker.format, found["parts"], tmp_path)
        compare(found, sample, live, record_property)
    record_property("sample-format", maker.format)


def kept_listings(name):
    listings = {
        f"{said['tool']}, kept": other_tools.parsed(said["tool"], said["status"], "\n".join(said["output"]))
        for said in kept_samples.read(name)["listings"]
    }
    assert listings
    return listings


@pytest.mark.parametrize("family", FAMILIES)
def test_what_the_installed_tool_makes_is_listed_as_the_installed_tools_list_it(
    family, tmp_path, record_property, subtests
):
    makers = {name: maker for name, maker in MADE_BY_TOOLS.items() if maker.tools[-1].rstrip("6") == family}
    missing = {
        tool for maker in makers.values() for tool in maker.tools if archive_tools.program(tool) is None
    }
    for name, maker in makers.items():
        if missing.intersection(maker.tools):
            continue
        with subtests.test(name):
            sample = samples.make_anew(name, tmp_path / name)
            found = inspected(sample)
            if sample.entries is not None:
                live = other_tools.listings(maker.format, found["parts"], tmp_path / name)
                compare(found, sample, live, record_property)
    if missing:
        lacking(*sorted(missing))


@pytest.mark.asyncio(loop_scope="module")
# Where no program unpacks the packed comment of the older format, rarfile does not open the archive.
@pytest.mark.parametrize(
    "name", [n for n in MADE_BY_TOOLS if n.startswith("rar") and n != "rar4_tool_comment"]
)
async def test_checksums_and_times_of_a_kept_rar_are_those_that_rarfile_reads(name, tmp_path, nursery):
    sample = samples.build(name, tmp_path)
    _, ours = await memory_sets.examined(nursery, {file.name: file.read_bytes() for file in sample.files})
    theirs = {info.filename.rstrip("/"): info for info in rarfile.RarFile(sample.files[0]).infolist()}
    assert (not theirs) == (sample.entries is None)
    for entry in ours.listing.entries:
        info = theirs[entry.path.rstrip("/")]
        assert entry.crc32 == info.CRC
        assert entry.compressed_size == info.compress_size
        assert entry.modified.rstrip("Z") == "{:04d}-{:02d}-{:02d}T{:02d}:{:02d}:{:02d}".format(
            *info.date_time
        )


def test_what_is_kept_is_what_the_tools_are_said_to_make_and_is_small():
    assert kept_samples.names() == sorted(MADE_BY_TOOLS)
    for name, maker in MADE_BY_TOOLS.items():
        about = kept_samples.read(name)
        assert (about["format"], about["line"]) == (maker.format, maker.make.line), name
        assert list(about["made_by"]) == list(maker.tools)
        assert len(kept_samples.files(name)) == 1 + len(about["parts"])
    kept = [file for name in kept_samples.names() for file in kept_samples.files(name)]
    assert sum(file.stat().st_size for file in kept) < KEPT_BYTES


def test_the_kept_listings_come_from_every_tool():
    asked = {
        listing["tool"] for name in kept_samples.names() for listing in kept_samples.read(name)["listings"]
    }
    assert asked == set(other_tools.PARSERS)
