"""Files that are no running total are refused."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

import sfumato as sf
from publishing.visits import source


@pytest.fixture
def publisher(tmp_path: Path) -> Iterator[sf.Publisher]:
    with sf.Publisher(source(), ledger=tmp_path / "b.db", account="a", budget="3") as opened:
        yield opened


@pytest.mark.parametrize(
    "edit",
    [
        lambda plain: plain | {"outputs": [[1]] * 9, "events": [""] * 9},
        lambda plain: (
            plain
            | {
                "outputs": [[], []],
                "settled": plain["settled"]
                | {"machine": plain["settled"]["machine"] | {"cells": 0}},
            }
        ),
        lambda plain: plain | {"settled": plain["settled"] | {"labels": ["a", "b"]}},
        lambda plain: plain | {"settled": plain["settled"] | {"grain": "0"}},
    ],
)
def test_a_false_file_is_no_running_total(
    publisher: sf.Publisher, tmp_path: Path, edit: object
) -> None:
    stream = publisher.open(sf.Counter(4), epsilon="1", key="k")
    stream.push(1)
    stream.push(2)
    stream.history().save(tmp_path / "true.json")
    plain = msgspec.json.decode((tmp_path / "true.json").read_bytes())
    (tmp_path / "false.json").write_bytes(msgspec.json.encode(edit(plain)))  # type: ignore[operator]
    with pytest.raises(sf.SfumatoError):
        sf.load(tmp_path / "false.json")


YEAR = sf.Calendar("2013-01-01", "2013-01-06")


@pytest.mark.parametrize(
    ("method", "edit"),
    [
        ("tree", {"radices": [4]}),
        ("tree", {"radices": [1]}),
        ("tree", {"horizon": -365}),
        ("tree", {"radices": [3] * 40}),
        ("toeplitz", {"horizon": -1}),
        ("toeplitz", {"horizon": 10**9}),
        ("toeplitz", {"precision": -3}),
        ("blt", {"precision": -3}),
        ("blt", {"parameters": {"horizon": -5}}),
        ("blt", {"parameters": {"horizon": 10**12}}),
        ("blt", {"parameters": {"theta": [1.5]}}),
        ("blt", {"parameters": {"omega": []}}),
        ("none", {"scale": "-1"}),
        ("none", {"cells": 0}),
    ],
)
def test_a_mechanism_that_cannot_be_is_refused(
    tmp_path: Path, method: str, edit: dict[str, object]
) -> None:
    counter = sf.Counter(None) if method == "none" else sf.Counter(365, method=method)  # type: ignore[arg-type]
    with (
        sf.Publisher(source(), budget=sf.ZCDP("1")) as publisher,
        publisher.open(counter, rho="0.1", key="k") as stream,
    ):
        stream.push(1)
        plain = msgspec.json.decode(stream.history().save(tmp_path / "r.json").read_bytes())
    mechanism = plain["settled"]["machine"]
    for name, value in edit.items():
        mechanism[name] = mechanism[name] | value if isinstance(value, dict) else value
    (tmp_path / "false.json").write_bytes(msgspec.json.encode(plain))
    with pytest.raises(sf.SfumatoError) as refusal:
        sf.load(tmp_path / "false.json")
    assert len(refusal.value.args) == 3


def test_a_file_whose_steps_are_not_those_of_its_calendar(
    publisher: sf.Publisher, tmp_path: Path
) -> None:
    with publisher.open(sf.Counter(YEAR), epsilon="1", key="k") as stream:
        stream.push(1)
        plain = msgspec.json.decode(stream.history().save(tmp_path / "r.json").read_bytes())
    (tmp_path / "false.json").write_bytes(msgspec.json.encode(plain | {"events": ["2013-01-02"]}))
    with pytest.raises(sf.DataError):
        sf.load(tmp_path / "false.json")
