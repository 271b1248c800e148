"""Gone, changed, standing, or not to be judged."""

from datetime import UTC, datetime

from worker.domain.telegram import Document, Message
from worker.recovery.withdrawal import judge
from worker.store.withdrawals import PublishedPart

HASH = bytes(32)


def _part(message_id: int, document_id: int | None = 7) -> PublishedPart:
    return PublishedPart(message_id, 0, HASH, "a.zip", message_id, document_id)


def _message(message_id: int, document_id: int = 7) -> Message:
    document = Document(document_id, 0, b"", 1, 10, "a.zip", "application/zip")
    return Message(message_id, datetime.now(UTC), "", is_ours=True, document=document)


def test_a_message_is_gone_when_another_is_read_in_the_same_answer():
    judged = judge([_part(1), _part(2)], {2: _message(2)})
    assert (judged.gone, judged.standing) == ((_part(1),), (_part(2),))


def test_a_service_message_is_witness_enough():
    assert judge([_part(5)], {1: None}).gone == (_part(5),)


def test_nothing_is_gone_where_nothing_could_be_read():
    judged = judge([_part(1), _part(2)], {})
    assert (judged.gone, judged.undecided) == ((), (_part(1), _part(2)))


def test_a_message_that_carries_another_file_is_changed_and_not_gone():
    judged = judge([_part(1)], {1: _message(1, document_id=8)})
    assert (judged.gone, judged.changed) == ((), (_part(1),))
