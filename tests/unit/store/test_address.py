"""Database addresses as people write them."""

import pytest

from worker.errors import UserError
from worker.store.address import driver_dsn, parse_address, printable


@pytest.mark.parametrize(
    "address", ["postgresql://u:p@h:1/d", "postgres://u:p@h:1/d", "postgresql+asyncpg://u:p@h:1/d"]
)
def test_the_usual_spellings_mean_the_same(address):
    assert driver_dsn(address) == "postgresql://u:p@h:1/d"


def test_parameters_reach_the_driver_under_its_own_names():
    assert driver_dsn("postgresql://u@h/d?ssl=require") == "postgresql://u@h/d?sslmode=require"
    assert driver_dsn("postgresql://u@h/d?sslmode=require") == "postgresql://u@h/d?sslmode=require"


def test_a_password_with_special_characters_survives():
    assert "p%40ss%2Fword" in driver_dsn("postgresql://u:p%40ss%2Fword@h/d")


def test_what_is_printed_has_no_password_wherever_it_stood():
    assert "hunter2" not in printable("postgresql://u:hunter2@h/d?password=hunter2")


@pytest.mark.parametrize(
    "address", ["", "x", "mysql://u@h/d", "postgresql://u@h", "postgresql://u@h:99999/d", "http://h/d"]
)
def test_anything_else_is_refused_with_an_example(address):
    with pytest.raises(UserError, match=r"write it like postgresql://user@host:5432/database"):
        parse_address(address)
