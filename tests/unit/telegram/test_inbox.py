"""What has arrived is opened when it is worth it, and in an order that lets the cipher carry parts together."""

from worker.telegram.inbox import TOGETHER, Inbox

PART, SMALL = bytearray(1 << 20), bytearray(100)


def arrived(*packets):
    inbox = Inbox()
    for packet in packets:
        inbox.put(None, packet, len(packet), 0.0)
    return inbox


def lengths(packets):
    return [len(view) for _, view, _ in packets]


def test_parts_are_handed_out_together_before_small_packets():
    inbox = arrived(SMALL, PART, SMALL, *[PART] * (TOGETHER - 1))
    assert lengths(inbox.due(0.0, more=True)) == [len(PART)] * TOGETHER + [len(SMALL)] * 2
    assert inbox.due(0.0, more=True) == []


def test_parts_wait_for_more_and_small_packets_do_not():
    inbox = arrived(PART, SMALL)
    assert lengths(inbox.due(0.0, more=True)) == [len(SMALL)]
    assert lengths(inbox.due(inbox.patience(0.0), more=True)) == [len(PART)]


def test_the_last_parts_wait_for_nothing():
    assert lengths(arrived(PART, PART).due(0.0, more=False)) == [len(PART)] * 2
