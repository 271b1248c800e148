"""What markers alone say about a destination."""

from worker.domain.marked_set import Gathering, MarkedMessage, marked_sets
from worker.domain.marker import Marker


def _message(message_id: int, offset: int, length: int, *, of: int = 0, total: int = 30) -> MarkedMessage:
    marker = Marker(bytes([of]) * 32, total, offset, length, 0, total, "a.zip", 1, 2, 3)
    return MarkedMessage(message_id, message_id + 100, "a.zip", marker)


def test_windows_that_tile_the_whole_are_a_complete_set_in_order():
    (found,) = marked_sets([_message(3, 20, 10), _message(1, 0, 10), _message(2, 10, 10)])
    assert found.is_complete
    assert [part.message_id for part in found.parts] == [1, 2, 3]


def test_of_two_messages_with_one_window_the_older_counts_and_the_other_is_spare():
    (found,) = marked_sets([_message(9, 0, 30), _message(4, 0, 30)])
    assert found.is_complete
    assert ([m.message_id for m in found.parts], [m.message_id for m in found.spare]) == ([4], [9])


def test_a_hole_leaves_the_set_incomplete_and_says_how_much_is_missing():
    (found,) = marked_sets([_message(1, 0, 10), _message(3, 20, 10)])
    assert not found.is_complete
    assert found.missing_bytes == 20


def test_contents_are_kept_apart():
    assert len(marked_sets([_message(1, 0, 30), _message(2, 0, 30, of=1)])) == 2


def test_gathered_messages_become_a_set_with_the_last_of_its_parts_and_are_forgotten():
    gathering = Gathering()
    assert gathering.add(_message(1, 0, 10)) is None
    assert gathering.add(_message(2, 0, 30, of=1)).message_ids == [2]
    assert gathering.oldest == 1
    assert gathering.add(_message(5, 20, 10)) is None
    assert gathering.add(_message(7, 10, 10)).message_ids == [1, 5, 7]
    assert gathering.oldest is None
    assert list(gathering.rest()) == []


def test_of_two_with_one_window_the_later_is_given_back_while_the_rest_is_waited_for():
    gathering = Gathering()
    gathering.add(_message(1, 0, 10))
    assert gathering.add(_message(2, 0, 10)).message_id == 2
    (rest,) = gathering.rest()
    assert (rest.message_ids, rest.missing_bytes) == ([1], 20)
