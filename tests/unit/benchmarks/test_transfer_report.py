"""What a benchmark may say about its targets."""

import pytest
from transfer_report import Case, Line, Report

FAR = Line(50, 0.0)
MB = 1_000_000


def a_case(client, seconds, server_cpu=0.1, operation="down"):
    return Case(
        client=client,
        operation=operation,
        line=FAR,
        round=0,
        size=100 * MB,
        seconds=seconds,
        cpu=1.0,
        peak=MB,
        server_cpu=server_cpu,
        ceiling=200.0,
    )


def a_report(*cases):
    return Report(list(cases), "openssl", 1)


def states(report):
    return [target.state for target in report.targets()]


def test_a_run_that_meets_every_target_ends_well():
    report = a_report(a_case("fleet", 1.0), a_case("kurigram", 9.0))
    assert states(report)[0] == "met"
    assert report.verdict() == 0


def test_a_missed_target_ends_the_run_with_1():
    report = a_report(a_case("fleet", 1.0), a_case("kurigram", 7.0))
    assert states(report)[0] == "MISSED"
    assert report.verdict() == 1


def test_a_low_figure_of_a_server_that_was_busy_is_void():
    report = a_report(a_case("fleet", 1.0, server_cpu=0.81), a_case("kurigram", 7.0))
    assert states(report)[0] == "void: the server was too busy"
    assert report.verdict() == 2


@pytest.mark.parametrize(("seconds", "state"), [(9.0, "met"), (20.0, "aim reached")])
def test_a_server_that_was_busy_with_ours_alone_makes_a_good_figure_a_floor(seconds, state):
    report = a_report(a_case("fleet", 1.0, server_cpu=0.81), a_case("kurigram", seconds))
    assert states(report)[0] == f"{state}; the server was busy with ours, so it is at least that"
    assert report.verdict() == 0


def test_a_server_that_was_busy_with_the_other_client_flatters_ours():
    report = a_report(a_case("fleet", 1.0), a_case("kurigram", 20.0, server_cpu=19.0))
    assert report.verdict() == 2


def test_a_missed_target_counts_for_more_than_a_void_one():
    down = (a_case("fleet", 1.0, server_cpu=0.9), a_case("kurigram", 7.0))
    up = (a_case("fleet", 1.0, operation="up"), a_case("kurigram", 2.0, operation="up"))
    assert a_report(*down, *up).verdict() == 1
