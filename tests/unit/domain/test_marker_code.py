"""The code that only somebody with the fleet's key can write, and what it is bound to."""

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from worker.domain.marker import BadMarker, Marker, find_marker, read_marker, with_code
from worker.domain.marker_code import Under, code_of, is_coded, marker_key
from worker.domain.origin import Authority, Standing
from worker.domain.telegram import Document, Message

KEY = marker_key(b"k" * 32)
HERE = Under(channel=2_400_000_001, sender=0, document=77)
PLANNED = Marker(bytes(range(32)), 900, 0, 600, 0, 900, "Crème brûlée.zip", 1001, 7, 70)
OURS, STRANGER = 5001, 6001


def _caption(under: Under = HERE, marker: Marker = PLANNED) -> str:
    return with_code(f"A title\n{marker.line()}", lambda written: code_of(KEY, written, under))


def test_a_coded_marker_is_read_back_with_the_code_that_it_was_given():
    marker = find_marker(_caption())
    assert replace(marker, code="") == PLANNED
    assert is_coded([b"another key", KEY], marker, HERE)
    assert not is_coded([b"another key"], marker, HERE)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("content_hash", bytes(32)),
        ("total_size", 901),
        ("offset", 1),
        ("length", 599),
        ("file_index", 1),
        ("file_size", 899),
        ("file_name", "Other.zip"),
        ("source_channel", 1002),
        ("source_message", 8),
        ("source_document", 71),
    ],
)
def test_a_code_holds_for_no_other_field(field, value):
    marker = find_marker(_caption())
    changed = find_marker(replace(marker, **{field: value}).line())
    assert changed is not None
    assert not is_coded([KEY], changed, HERE)


@pytest.mark.parametrize(
    "elsewhere", [replace(HERE, channel=1), replace(HERE, sender=OURS), replace(HERE, document=78)]
)
def test_a_code_holds_for_no_other_channel_sender_or_document(elsewhere):
    assert not is_coded([KEY], find_marker(_caption()), elsewhere)


@pytest.mark.parametrize("name", ["x" * 500 + ".zip", "ab " * 200, "e\N{COMBINING ACUTE ACCENT}\u202e.zip"])
def test_a_code_outlives_a_cut_name_and_what_a_server_does_to_texts(name):
    caption = _caption(marker=replace(PLANNED, file_name=name))
    assert len(caption.splitlines()[-1]) <= 400
    for altered in (caption, caption.rstrip(), caption.replace("e\N{COMBINING ACUTE ACCENT}\u202e", "é")):
        assert is_coded([KEY], find_marker(altered), HERE)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("1001/", f"{10**20}/"),
        ("1001/", f"{10**19}/"),
        ("/7/", f"/{2**31}/"),
        (" 900 ", " 0 "),
        ("0+600", "0+0"),
        ("0+600", "0+901"),
        ("0+600", f"{2**63}+600"),
        ("0:900", f"{2**31}:900"),
        ("/70", f"/{2**63}"),
        ("1001/", f"{'9' * 3000}/"),
    ],
)
def test_w2_a_number_out_of_range_is_told_from_no_marker_at_all(old, new):
    line = PLANNED.line()
    assert old in line
    assert isinstance(read_marker(line.replace(old, new)), BadMarker)
    assert find_marker(line.replace(old, new)) is None


def _message(
    text: str, *, sender: int, document: int = 77, out: bool = False, edited: bool = False
) -> Message:
    file = Document(document, 1, b"", 1, 600, "a.zip", "application/zip")
    when = datetime(2026, 1, 1, tzinfo=UTC)
    return Message(9, when, text, out, document=file, sender_id=sender, is_edited=edited)


def _standing(message: Message) -> Standing:
    authority = Authority(HERE.channel, [KEY], frozenset({OURS}))
    return authority.standing(message, find_marker(message.text))


def test_w1_in_a_channel_the_document_tells_ours_from_a_copied_caption():
    assert _standing(_message(_caption(), sender=0)) is Standing.PROVEN
    assert _standing(_message(_caption(), sender=0, document=78)) is Standing.FOREIGN


def test_w1_in_a_group_the_sender_tells_ours_from_a_copy_of_everything():
    caption = _caption(replace(HERE, sender=OURS))
    assert _standing(_message(caption, sender=OURS)) is Standing.PROVEN
    assert _standing(_message(caption, sender=STRANGER)) is Standing.FOREIGN
    assert _standing(_message(caption, sender=-1)) is Standing.FOREIGN
    # Our account as an anonymous administrator.
    assert _standing(_message(caption, sender=0)) is Standing.PROVEN


def test_w1_words_alone_prove_the_bytes_only_of_a_sender_who_is_named():
    """As from a server that makes a document of the bytes only with the message."""
    assert _standing(_message(_caption(replace(HERE, document=0)), sender=0)) is Standing.TO_BE_HASHED
    caption = _caption(Under(HERE.channel, OURS, 0))
    assert _standing(_message(caption, sender=OURS)) is Standing.PROVEN
    assert _standing(_message(caption, sender=STRANGER)) is Standing.FOREIGN


def test_w1_a_marker_without_a_code_is_to_be_hashed_if_our_account_sent_it_and_nothing_otherwise():
    line = PLANNED.line()
    assert _standing(_message(line, sender=OURS)) is Standing.TO_BE_HASHED
    assert _standing(_message(line, sender=0, out=True)) is Standing.TO_BE_HASHED
    assert _standing(_message(line, sender=STRANGER)) is Standing.OLD
    assert _standing(_message(line, sender=0)) is Standing.OLD
    # In a channel other administrators may edit what ours has posted; in a group nobody else can.
    assert _standing(_message(line, sender=0, out=True, edited=True)) is Standing.OLD
    assert _standing(_message(line, sender=OURS, edited=True)) is Standing.TO_BE_HASHED
