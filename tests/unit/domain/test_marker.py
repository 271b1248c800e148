"""The caption line that says which bytes a message carries."""

from hypothesis import given
from hypothesis import strategies as st

from worker.domain.marker import MAX_LENGTH, Marker, find_marker

_MOST = 2**63 - 1


@st.composite
def _markers(draw) -> Marker:
    total = draw(st.integers(1, _MOST))
    file_size = draw(st.integers(1, total))
    length = draw(st.integers(1, file_size))
    return Marker(
        content_hash=draw(st.binary(min_size=32, max_size=32)),
        total_size=total,
        offset=draw(st.integers(0, total - length)),
        length=length,
        file_index=draw(st.integers(0, 2**31 - 1)),
        file_size=file_size,
        file_name=draw(st.text(min_size=1, max_size=300)),
        source_channel=draw(st.integers(0, _MOST)),
        source_message=draw(st.integers(0, 2**31 - 1)),
        source_document=draw(st.integers(-_MOST - 1, _MOST)),
        code=draw(st.sampled_from(["", "Ab-_" * 4])),
    )


_MARKERS = _markers()


@given(
    marker=_MARKERS,
    before=st.sampled_from(["", "A title\n", "#tag text\n\n"]),
    after=st.sampled_from(["", "\nthe end"]),
)
def test_a_marker_is_found_again_in_any_caption(marker, before, after):
    found = find_marker(before + marker.line() + after)
    assert found is not None
    for field in (
        "content_hash",
        "total_size",
        "offset",
        "length",
        "file_index",
        "file_size",
        "source_document",
    ):
        assert getattr(found, field) == getattr(marker, field)


@given(marker=_MARKERS)
def test_a_marker_is_one_line_of_at_most_400_characters(marker):
    assert len(marker.line()) <= MAX_LENGTH
    assert len(marker.line().splitlines()) == 1


def test_a_long_name_is_cut_and_a_plain_one_survives():
    marker = Marker(bytes(32), 10, 0, 10, 0, 10, "Crème brûlée.zip", 1, 2, 3)
    assert find_marker(marker.line()).file_name == "Crème brûlée.zip"


def test_captions_without_a_marker_have_none():
    for caption in (
        "",
        "af1",
        "af1 not a marker",
        "xaf1 " + Marker(bytes(32), 1, 0, 1, 0, 1, "a", 1, 1, 1).line()[4:],
    ):
        assert find_marker(caption) is None
