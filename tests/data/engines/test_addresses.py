"""Addresses of tables in plans: relative to the plan's folder, or the same in each folder."""

from __future__ import annotations

from pathlib import Path

import pytest

from sfumato.data.engines.addresses import SourceAddress, for_folder, in_folder

SAME = (
    "postgresql://host/db?table=t",
    "duckdb:~/k.db?table=t",
    "duckdb:/data/k.db?table=t",
)


@pytest.mark.parametrize("address", SAME)
def test_some_addresses_mean_the_same_in_each_folder(address: str, tmp_path: Path) -> None:
    assert in_folder(address, tmp_path) == for_folder(address, tmp_path) == address


def test_a_relative_path_is_that_of_the_same_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "deep").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "deep" / "down", target_is_directory=True)
    (tmp_path / "deep" / "down").mkdir()
    for folder in ("plans", "link", "."):
        written = for_folder("duckdb:k.db?table=a%3Fb", Path(folder))
        found = in_folder(written, Path(folder))
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
    assert SourceAddress(given).without_password() == kept
