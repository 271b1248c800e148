"""Whether a set fits on the disk, and what is said when it does not."""

from worker.domain.disk_space import GIB, Space, lack_of_room
from worker.domain.split_plan import MIB


def _lack(needed: int, free: int, *, total: int = 100 * GIB, promised: int = 0, in_flight: int = 0):
    return lack_of_room(needed, Space(free, total), kept_free=0, promised=promised, in_flight=in_flight)


def test_what_is_promised_to_others_is_not_free():
    assert _lack(GIB, GIB) is None
    assert _lack(GIB, GIB, promised=1) is not None


def test_a_reserve_stays_free():
    assert lack_of_room(GIB, Space(GIB, 100 * GIB), kept_free=1, promised=0, in_flight=0) is not None


def test_a_set_that_fits_when_others_are_done_asks_for_its_space():
    lack = _lack(3174 * MIB, 1229 * MIB, in_flight=2 * GIB)
    assert lack.asks
    assert lack.reason == "disk: 3.1 GiB needed, 1.2 free"


def test_a_disk_that_others_have_filled_is_not_asked():
    lack = _lack(300 * MIB, 20 * MIB)
    assert not lack.asks
    assert lack.reason == "disk: 300.0 MiB needed, 20.0 free — free some space"


def test_a_set_larger_than_the_whole_disk_says_so():
    lack = _lack(3 * GIB, GIB, total=2 * GIB)
    assert not lack.asks
    assert lack.reason == "disk: 3.0 GiB needed, but all of it holds 2.0 GiB — put data_dir on a larger one"


def test_more_promised_than_there_is_counts_as_nothing_free():
    assert "0.0 free" in _lack(MIB, MIB, promised=10 * MIB).reason
