"""Database addresses as people write them."""

import pytest

from worker.errors import UserError
from worker.store.address import driver_dsn, parse_address, printable, transport_to


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


@pytest.fixture(autouse=True)
def no_environment(monkeypatch):
    for name in ("PGHOST", "PGSSLMODE"):
        monkeypatch.delenv(name, raising=False)


@pytest.mark.parametrize(
    "address",
    [
        "postgresql://u@localhost/d",
        "postgresql://u@127.0.0.9:5433/d",
        "postgresql://u@[::1]:5432/d",
        "postgresql:///d",
        "postgresql://u@/d?host=/run/postgresql",
    ],
)
def test_a_database_on_this_host_needs_no_tls(address):
    assert transport_to(address).is_proven


@pytest.mark.parametrize(
    ("address", "tls"),
    [
        ("postgresql://u@db.example.org/d", "prefer"),
        ("postgresql://u@10.0.0.7/d?sslmode=require", "require"),
        ("postgresql://u@db.example.org/d?ssl=verify-ca", "verify-ca"),
        ("postgresql://u@/d?host=localhost,db.example.org", "prefer"),
        ("postgresql://u@[2001:db8::1]:5432/d", "prefer"),
        ("postgresql://u@localhost.example.org/d", "prefer"),
    ],
)
def test_a_database_elsewhere_has_to_prove_itself(address, tls):
    transport = transport_to(address)
    assert not transport.is_proven
    assert transport.tls == tls
    with_it = address.split("?")[0] + "?sslmode=verify-full" if "host=" not in address else None
    assert with_it is None or transport_to(with_it).is_proven


def test_what_the_driver_takes_from_the_environment_counts(monkeypatch):
    monkeypatch.setenv("PGSSLMODE", "verify-full")
    assert transport_to("postgresql://u@db.example.org/d").is_proven
    monkeypatch.setenv("PGHOST", "db.example.org")
    monkeypatch.setenv("PGSSLMODE", "disable")
    assert transport_to("postgresql:///d").elsewhere == ("db.example.org",)
