"""Ends that come from outside."""

import signal

import pytest

from worker.signals import leaving_in_order, undisturbed


@pytest.fixture(params=[signal.SIGTERM, signal.SIGHUP])
def number(request):
    """A signal that ends a process. A run that was started by nohup ignores one of them."""
    before = signal.signal(request.param, signal.SIG_DFL)
    yield request.param
    signal.signal(request.param, before)


def test_a_signal_that_ends_the_process_goes_through_what_has_to_be_undone(number):
    undone = []
    with pytest.raises(SystemExit) as ended, leaving_in_order():
        try:
            signal.raise_signal(number)
        finally:
            undone.append(number)
    assert (ended.value.code, undone) == (128 + number, [number])


def test_what_must_not_be_cut_short_is_finished_first():
    finished = []
    with pytest.raises(KeyboardInterrupt), undisturbed():
        signal.raise_signal(signal.SIGINT)
        finished.append("it")
    assert finished == ["it"]


def test_signals_held_back_are_heard_as_they_would_have_been():
    with pytest.raises(SystemExit) as ended, leaving_in_order(), undisturbed():
        signal.raise_signal(signal.SIGTERM)
    assert ended.value.code == 128 + signal.SIGTERM


def test_a_signal_that_somebody_ignored_on_purpose_stays_ignored():
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with leaving_in_order(), undisturbed():
            signal.raise_signal(signal.SIGHUP)
        assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGHUP, before)


def test_afterwards_everything_is_as_it_was():
    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    before = [signal.getsignal(number) for number in numbers]
    with leaving_in_order(), undisturbed():
        pass
    assert [signal.getsignal(number) for number in numbers] == before
