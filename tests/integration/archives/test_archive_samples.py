"""Every sample through ``worker archives inspect --json``, compared with what other tools say."""

import json
import shutil

import archive_samples as samples
import other_archive_tools as other_tools
import pytest
from click.testing import CliRunner

from worker.cli.archives import archives

ENTRY_KEYS = ["path", "size", "compressed_size", "crc32", "modified", "is_dir", "encrypted"]


@pytest.mark.parametrize("name", samples.MAKERS)
def test_every_sample_is_complete_and_its_listing_agrees_with_other_tools(name, tmp_path, record_property):
    sample = samples.build(name, tmp_path / "s")
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
    if sample.entries is not None:  # no tool lists encrypted names without the password
        form = samples.MAKERS[name].format
        ours = sorted((path.rstrip("/"), size) for path, size in listed.items())
        for tool, theirs in other_tools.listings(form, found["parts"], sample.files[0].parent).items():
            if isinstance(theirs, other_tools.Partial):
                assert set(theirs) <= set(ours), tool
                record_property("not-read-by", tool)
            else:
                assert ours == sorted(theirs), tool
                record_property("compared-with", tool)
    record_property("sample-format", samples.MAKERS[name].format)


@pytest.mark.parametrize("tool", ["7zz", "bsdtar", "rar", "unrar", "unzip", "zip"])
def test_samples_and_comparisons_include_the_real_tool(tool):
    if shutil.which(tool) is None:
        pytest.skip(f"{tool} is not installed: what it would make or compare is left out")
    assert any(tool in maker.tools for maker in samples.MAKERS.values()) or tool in ("unrar", "unzip")
