"""No external effect stands where a kill could not be tried."""

from failpoints import effects, transaction_names


def test_every_file_operation_and_every_send_is_bracketed():
    found = list(effects())
    assert len(found) >= 6, "the walk finds what it looks for"
    assert [effect for effect in found if not effect.bracketed] == []


def test_every_transaction_has_a_name_of_its_own():
    names = [name for _, name in transaction_names()]
    assert [where for where, name in transaction_names() if not name] == []
    assert sorted(name for name in set(names) if names.count(name) > 1) == []
    assert len(names) > 20
