import asyncio

import pytest
from manual_clock import settle

from worker.sandbox.faults import Action, RpcFault, Rules
from worker.sandbox.references import References, own_hash


def fired(rules, calls, method="upload.getFile", phone="4930"):
    return [rules.match(method, phone) is not None for _ in range(calls)]


def test_a_rule_fires_from_its_nth_call_as_often_as_it_says():
    rules = Rules()
    rules.add("upload.getFile", "error", nth=2, count=2)
    assert fired(rules, 5) == [False, True, True, False, False]


def test_a_rule_without_end_keeps_firing():
    rules = Rules()
    rule = rules.add("*", "delay", nth=2, count=0)
    assert fired(rules, 4) == [False, True, True, True]
    assert rules.hits() == {rule: 3}


def test_only_calls_of_its_method_and_account_count():
    rules = Rules()
    rules.add("upload.getFile", "stall", account="+4930")
    assert fired(rules, 1, method="upload.saveFilePart") == [False]
    assert fired(rules, 1, phone="4931") == [False]
    assert fired(rules, 1, phone=None) == [False]
    assert fired(rules, 1) == [True]


def test_rules_that_match_together_all_count_and_the_first_acts():
    rules = Rules()
    rules.add("upload.getFile", "stall", nth=2)
    rules.add("upload.getFile", "short", nth=1, count=2)
    assert [rules.match("upload.getFile", None).action for _ in range(2)] == [Action.SHORT, Action.STALL]


def test_an_unknown_action_is_refused():
    with pytest.raises(ValueError, match="explode"):
        Rules().add("*", "explode")


def test_a_reference_holds_for_its_document_and_time_only():
    references = References(b"secret", lifetime=0)
    reference = references.make(7, 42, 3)
    assert references.check(7, reference) == (42, 3)
    with pytest.raises(RpcFault, match="FILE_REFERENCE_INVALID"):
        references.check(8, reference)
    with pytest.raises(RpcFault, match="FILE_REFERENCE_EMPTY"):
        references.check(7, b"")
    references.expire_all()
    with pytest.raises(RpcFault, match="FILE_REFERENCE_EXPIRED"):
        references.check(7, reference)


def test_a_reference_expires_after_its_lifetime():
    references = References(b"secret", lifetime=-1)
    with pytest.raises(RpcFault, match="FILE_REFERENCE_EXPIRED"):
        references.check(7, references.make(7, 42, 3))


def test_two_accounts_have_different_hashes_for_one_channel():
    assert own_hash(99, 1) != own_hash(99, 2)
    assert own_hash(99, 1) == own_hash(99, 1)


@pytest.mark.parametrize("end", [Rules.lift, lambda rules, _: rules.clear()])
async def test_a_rule_without_seconds_holds_its_calls_until_it_is_lifted(end):
    rules = Rules()
    rule = rules.add("*", "delay", seconds=None)
    holding = asyncio.create_task(rules.match("upload.getFile", None).hold())
    await settle()
    assert not holding.done()
    end(rules, rule)
    await holding
    assert rules.hits() == {}
