"""Of each person the first rows of the whole stream are counted."""

from __future__ import annotations

from collections.abc import Iterator
from enum import StrEnum
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import sfumato as sf
from publishing.visits import source
from sfumato.audit.runs import Scripted
from sfumato.random.bits import override


@pytest.fixture
def publisher(tmp_path: Path) -> Iterator[sf.Publisher]:
    with sf.Publisher(source(), ledger=tmp_path / "b.db", account="a", budget="3") as opened:
        yield opened


def test_persons_are_bounded_over_all_steps(tmp_path: Path) -> None:
    with (
        sf.Publisher(
            source(person="who", rows_per_person=2), ledger=tmp_path / "b.db", budget="1"
        ) as publisher,
        override(Scripted()),
    ):
        with publisher.open(sf.Counter(9, by="kind"), epsilon="0.01", key="k") as stream:
            assert stream.push(
                ["a", "a", "b", "a"], persons=["ann", "ann", "ann", "bob"]
            ).value.tolist() == [3, 0, 0]
        with publisher.open(sf.Counter(9, by="kind"), epsilon="0.01", key="k") as stream:
            assert stream.push(
                [None, "b", "b", "a", "b"], persons=["bob", "bob", "bob", 7, "7"]
            ).value.tolist() == [4, 2, 0]
            assert "first 2 count" in str(stream.history().guarantee)
            for wrong in (
                {"increment": ["a"]},
                {"increment": ["a"], "persons": ["x", "y"]},
                {"increment": ["a"], "persons": [["x"]]},
            ):
                with pytest.raises(sf.UsageError):
                    stream.push(**wrong)  # type: ignore[arg-type]
            assert stream.step == 2
            missing = [None, float("nan"), 1.5, np.float64("nan")]
            assert stream.push(["b"] * 5, persons=[*missing, "eve"]).value.tolist() == [4, 3, 0], (
                "nobody's rows are dropped"
            )
            assert stream.push(["c"] * 3, persons=[8.0, 8, np.int64(8)]).value.tolist() == [
                4,
                3,
                2,
            ], "one person, however held"
        assert publisher.ledger.verify().ok


def test_a_count_that_does_not_fit_its_persons_makes_no_list(publisher: sf.Publisher) -> None:
    table = pa.table({"x": pa.array([], pa.float64()), "id": pa.array([], pa.string())})
    source = sf.source(table, sf.Domain(x=sf.Interval(0, 1)), person="id", name="empty")
    stream = sf.Publisher(source, budget="1").open(sf.Counter(3), epsilon="1", key="k")
    for count, persons in ((2**53, ["a"]), (5, []), (0, ["a"])):
        with pytest.raises(sf.UsageError, match="there is not one for each row"):
            stream.push(count, persons=persons)
    assert stream.step == 0


def test_rows_of_persons_over_a_calendar(tmp_path: Path) -> None:
    counter = sf.Counter(["mon", "tue", "wed"], by="kind")
    with (
        sf.Publisher(source(person="who"), ledger=tmp_path / "b.db", budget="1") as publisher,
        override(Scripted()),
    ):
        stream = publisher.open(counter, epsilon="0.01", key="k")
        assert stream.push(["a", "b"], event="tue", persons=["ann", "bob"]).value.tolist() == [
            1,
            1,
            0,
        ]
        assert stream.push(["a"], event="mon", persons=["eve"]).value.tolist() == [0, 0, 0]
        assert stream.push(["a", "a"], event="wed", persons=["eve", "ann"]).value.tolist() == [
            2,
            1,
            0,
        ], "what counted nowhere is no row of eve's"


def test_a_person_of_a_class_of_its_own_is_the_same_person(tmp_path: Path) -> None:
    class Who(StrEnum):
        ANN = "ann"

    class Number(int):
        pass

    with (
        sf.Publisher(source(person="who"), ledger=tmp_path / "b.db", budget="1") as publisher,
        override(Scripted()),
    ):
        stream = publisher.open(sf.Counter(9), epsilon="1", key="k")
        stream.push(3, persons=["ann", Who.ANN, np.str_("ann")])
        assert stream.push(3, persons=[7, Number(7), np.int64(7)]).value == 2
