"""Who hears of SIGINT and SIGTERM once the fleet does not work any more."""

import signal

from worker.fleet.scheduler import _signals
from worker.signals import leaving_in_order


async def test_after_the_work_a_signal_is_heard_by_whoever_heard_it_before():
    numbers = (signal.SIGINT, signal.SIGTERM)
    with leaving_in_order():
        before = [signal.getsignal(number) for number in numbers]
        with _signals(process=None, cancel_all=lambda: None):
            assert [signal.getsignal(number) for number in numbers] != before
        assert [signal.getsignal(number) for number in numbers] == before
