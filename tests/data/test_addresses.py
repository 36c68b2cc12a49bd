"""Addresses of tables in plans: relative to the plan's folder, or the same in each folder."""

from __future__ import annotations

from pathlib import Path

import pytest
from psycopg.conninfo import conninfo_to_dict

import sfumato as sf
from sfumato.data.addresses import (
    Address,
    of_plan,
    read,
    required_of_plan,
    server_of,
)


def address_of(text: str) -> Address:
    address = read(text)
    assert address is not None
    return address


SAME = (
    "postgresql://host/db?table=t",
    "duckdb:~/k.db?table=t",
    "duckdb:/data/k.db?table=t",
)


@pytest.mark.parametrize("address", SAME)
def test_some_addresses_mean_the_same_in_each_folder(address: str, tmp_path: Path) -> None:
    named = address_of(address)
    assert named.in_folder(tmp_path) == named.for_folder(tmp_path) == address


def test_a_relative_path_is_that_of_the_same_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "deep").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "deep" / "down", target_is_directory=True)
    (tmp_path / "deep" / "down").mkdir()
    for folder in ("plans", "link", "."):
        written = address_of("duckdb:k.db?table=a%3Fb").for_folder(Path(folder))
        found = address_of(written).in_folder(Path(folder))
        path = Path(found.removeprefix("duckdb:").removesuffix("?table=a%3Fb"))
        (tmp_path / folder).mkdir(exist_ok=True)
        assert path.resolve() == tmp_path / "k.db"


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        ("postgresql://ada:pw@host:5/db?table=t", "postgresql://ada@host:5/db?table=t"),
        ("postgresql://a%40b:p%3Fw@host/db?table=t", "postgresql://a%40b@host/db?table=t"),
        ("postgresql://ada:p@w@host/db?table=t", "postgresql://...?table=t"),
        (
            "postgresql://ada@/db?host=/run/pg&table=a.b",
            "postgresql://ada@/db?host=/run/pg&table=a.b",
        ),
        ("postgresql://h/db?user=ada&password=pw&table=t", "postgresql://h/db?user=ada&table=t"),
        ("postgresql://h/db?sslpassword=pw&options=pw&new=pw&table=t", "postgresql://h/db?table=t"),
        ("duckdb:trips.db?table=t", "duckdb:trips.db?table=t"),
    ],
)
def test_an_address_in_a_plan_keeps_all_but_what_is_secret(given: str, kept: str) -> None:
    assert address_of(given).without_password() == kept


HOME = {"PGHOST": "db.example"}
REFUSED = (
    "hostaddr=10.0.0.1",
    "passfile=/tmp/own",
    "service=theirs",
    "password=known",
    "options=-c%20role%3Dother",
    "sslkey=/home/ada/key",
    "sslcert=/home/ada/cert",
    "sslpassword=known",
    "sslkeylogfile=/tmp/keys",
    "sslrootcert=/tmp/theirs.pem",
    "sslmode=prefer",
    "sslmode=disable",
    "channel_binding=disable",
    "gssencmode=require",
    "krbsrvname=theirs",
    "oauth_issuer=theirs",
    "scram_client_key=AAAA",
    "require_auth=password",
    "replication=database",
    "client_encoding=latin1",
    "host%61ddr=10.0.0.1",
    "unheard=of",
)


@pytest.mark.parametrize("parameter", REFUSED)
def test_a_plan_may_not_say_what_sends_a_password_away(parameter: str) -> None:
    address = f"postgresql://ada@db.example/city?{parameter}&table=trips"
    with pytest.raises(sf.UsageError) as refusal:
        required_of_plan(address, "the plan p.toml, [source], path")
    message = str(refusal.value)
    name, _, value = parameter.replace("%61", "a").partition("=")
    assert f"its address states {name}" in message
    assert value not in message or value in ("password", "require", "disable", "of")
    # The message has the line to write, which passes.
    written = message.partition('path = "')[2].partition('"')[0]
    assert written == "postgresql://ada@db.example/city?table=trips"
    required_of_plan(written, "the plan")


@pytest.mark.parametrize(
    "place",
    [
        "[/,evil.example]/city?table=t",
        "[db.example/,evil.example]/city?table=t",
        "[?host=db.example&application_name=,evil.example]?table=t",
        "ada@[db.example@evil.example/city?table=t",
        "db.example evil.example/city?table=t",
        "db.example[::1]/city?table=t",
    ],
)
def test_a_place_that_the_driver_may_read_otherwise_is_refused(place: str) -> None:
    """In brackets, the driver reads hosts where others see the end of them."""
    for address in (f"postgresql://{place}", f"postgresql:/{place}"):
        with pytest.raises(sf.UsageError, match="not clear"):
            required_of_plan(address, "the plan")
        with pytest.raises(sf.UsageError, match="not clear"):
            of_plan(address, HOME)


def test_a_plan_holds_no_password() -> None:
    with pytest.raises(sf.UsageError, match="states password") as refusal:
        required_of_plan("postgresql:/ada:opensesame@db.example/city?table=trips", "the plan")
    assert "opensesame" not in repr(refusal.value)
    assert 'path = "postgresql://ada@db.example/city?table=trips"' in str(refusal.value)


@pytest.mark.parametrize(
    "address",
    [
        "postgresql://ada@db.example:5433/city?sslmode=verify-full&sslrootcert=system&table=trips",
        "postgresql:///city?host=/run/postgresql&sslmode=disable&table=trips",
        "postgresql://h/d?user=u&dbname=d&port=1&connect_timeout=5&application_name=a&table=t",
        "postgresql://h/d?target_session_attrs=any&load_balance_hosts=random&table=t",
        "postgresql://h/d?channel_binding=require&table=t",
        "postgresql://ada@[::1]:5432,db.example:5433/city?table=t",
        "trips.parquet",
        "duckdb:trips.db?table=t",
    ],
)
def test_a_plan_may_say_where_a_table_is_and_who_reads_it(address: str) -> None:
    required_of_plan(address, "the plan")


@pytest.mark.parametrize(
    ("address", "own", "added"),
    [
        ("postgresql://db.example/c", HOME, {"require_auth", "sslmode"}),
        ("postgresql:/db.example/c", HOME, {"require_auth", "sslmode"}),
        ("postgresql://db.example/c?sslmode=verify-full", HOME, {"require_auth"}),
        ("postgresql://db.example/c", HOME | {"PGSSLMODE": "prefer"}, {"require_auth"}),
        ("postgresql://db.example/c", HOME | {"PGREQUIREAUTH": "md5"}, {"sslmode"}),
        ("postgresql:///c", {}, {"require_auth"}),
        ("postgresql://127.0.0.1:5/c", {}, {"require_auth", "password", "passfile"}),
        ("postgresql:///c?host=/tmp/theirs", {}, {"require_auth", "password", "passfile"}),
        ("postgresql://evil/c", HOME, {"require_auth", "sslmode", "password", "passfile"}),
        ("postgresql:/evil/c", HOME, {"require_auth", "sslmode", "password", "passfile"}),
        ("POSTGRES://evil/c", {}, {"require_auth", "sslmode", "password", "passfile"}),
        (
            "postgresql://db.example,evil/c",
            HOME,
            {"require_auth", "sslmode", "password", "passfile"},
        ),
        (
            "postgresql:///c?host=%2Frun%2Cevil",
            {},
            {"require_auth", "sslmode", "password", "passfile"},
        ),
        (
            "postgresql://db.example/c?host=evil",
            HOME,
            {"require_auth", "sslmode", "password", "passfile"},
        ),
    ],
)
def test_no_password_goes_to_a_server_that_only_a_plan_names(
    address: str, own: dict[str, str], added: set[str]
) -> None:
    stated = {name for name in ("sslmode", "host") if f"{name}=" in address}
    connected = conninfo_to_dict(of_plan(address, own))
    assert set(connected) - stated - {"host", "port", "dbname"} == added
    if "password" in added:
        assert connected["password"] == ""
        assert not Path(str(connected["passfile"])).exists()


def test_who_is_asked_is_told() -> None:
    assert server_of("postgresql://ada@db.example:1/c?table=t") == "db.example as ada"
    assert server_of("postgresql:///c?host=/run&user=a%0Ab") == "/run as a\\nb"
    assert server_of("trips.parquet") is None


@pytest.mark.parametrize("query", ["application_name=a+b", "application_name=a%20b", "user=a%2Bb"])
def test_parameters_are_read_as_the_driver_reads_them(query: str) -> None:
    address = address_of(f"postgresql://db.example/city?{query}&table=t+u")
    driver = conninfo_to_dict(f"postgresql://db.example/city?{query}")
    assert dict(address.parameters).items() <= driver.items()
    assert conninfo_to_dict(address.url) == driver
    assert address.table == "t+u"


def test_no_address_shows_its_password() -> None:
    address = address_of("postgresql://ada:hunter2@host/db?table=t&password=hunter2")
    assert "hunter2" not in repr(address) + str(address) + address.without_password()
