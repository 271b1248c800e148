"""What a scan makes of a message."""

from datetime import UTC, datetime

import pytest

from worker.domain.telegram import ChannelRef, Document, Message
from worker.pipeline.scan import PROTECTED, find_file
from worker.store.channels import Source


def _source(*, protected: bool = False, allowed: bool = False) -> Source:
    return Source(1, 1, ChannelRef(1, 1), "source", 0, is_protected=protected, allow_protected=allowed)


def _message(name: str, *, size: int = 10, protected: bool = False) -> Message:
    document = Document(1, 1, b"", 2, size, name, "application/zip")
    return Message(5, datetime.now(UTC), "", False, document, is_protected=protected)


@pytest.mark.parametrize("name", ["a.zip", "B.RAR", "c.7z", "d.tar.gz"])
def test_a_single_archive_becomes_a_set(name):
    assert find_file(_message(name), _source()).format is not None


@pytest.mark.parametrize("name", ["a.part1.rar", "b.7z.001", "c.z01", "notes.pdf", ""])
def test_parts_and_other_files_are_written_down_and_wait(name):
    found = find_file(_message(name), _source())
    assert found is not None
    assert found.format is None


def test_what_carries_no_file_is_passed():
    assert find_file(7, _source()) is None
    assert find_file(Message(5, datetime.now(UTC), "hello", False), _source()) is None


def test_p14_protected_sources_are_skipped_with_that_reason_unless_their_owner_allows_it():
    assert find_file(_message("a.zip", protected=True), _source()).skip_reason == PROTECTED
    assert find_file(_message("a.zip"), _source(protected=True)).skip_reason == PROTECTED
    assert find_file(_message("a.zip"), _source(protected=True, allowed=True)).skip_reason is None


def test_an_empty_file_is_skipped_with_that_reason():
    assert find_file(_message("a.zip", size=0), _source()).skip_reason == "it is empty"
