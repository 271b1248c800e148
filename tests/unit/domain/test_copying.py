from dataclasses import replace
from datetime import UTC, datetime

import pytest

from worker.domain.copying import Hashed, document_to_copy, whole_file
from worker.domain.telegram import Document, Message, PostedNow
from worker.errors import RefusedError

DOCUMENT = Document(7, 8, b"fresh", 2, 100, "kit.zip", "application/zip")
MESSAGE = Message(5, datetime(2026, 1, 1, tzinfo=UTC), "", is_ours=False, document=DOCUMENT)
POSTED = PostedNow(MESSAGE, is_channel_protected=False)
HASHED = Hashed(7, 100, "kit.zip")


@pytest.mark.parametrize(
    ("window", "index"),
    [
        ((0, 10), 0),
        ((10, 20), 2),
        ((30, 5), 3),
        ((0, 5), None),
        ((5, 5), None),
        ((0, 30), None),
        ((10, 25), None),
        ((10, 10), None),
        ((20, 10), None),
        ((35, 5), None),
    ],
)
def test_a_window_is_a_whole_file_only_from_its_first_byte_to_its_last(window, index):
    assert whole_file([10, 0, 20, 5], *window) == index


def test_the_document_that_was_hashed_is_copied_with_its_fresh_reference():
    assert document_to_copy(POSTED, HASHED) is DOCUMENT


@pytest.mark.parametrize(
    ("posted", "reason"),
    [
        (PostedNow(None, is_channel_protected=False), "is gone"),
        (replace(POSTED, message=replace(MESSAGE, document=None)), "is gone"),
        (replace(POSTED, is_channel_protected=True), "forbids copying"),
        (replace(POSTED, message=replace(MESSAGE, is_protected=True)), "forbids copying"),
        (
            replace(POSTED, message=replace(MESSAGE, document=replace(DOCUMENT, document_id=9))),
            "another file",
        ),
        (replace(POSTED, message=replace(MESSAGE, document=replace(DOCUMENT, size=99))), "another file"),
        (
            replace(POSTED, message=replace(MESSAGE, document=replace(DOCUMENT, file_name="../kit.zip"))),
            "another name",
        ),
    ],
)
def test_what_is_gone_protected_exchanged_or_badly_named_is_not_copied(posted, reason):
    with pytest.raises(RefusedError, match=reason):
        document_to_copy(posted, HASHED)
