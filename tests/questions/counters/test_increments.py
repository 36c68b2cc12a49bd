"""What a step may bring: clamped, dropped or refused."""

from __future__ import annotations

import math
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import sfumato as sf
from publishing.visits import source
from sfumato.audit.runs import Scripted
from sfumato.random.bits import override


@pytest.fixture
def publisher(tmp_path: Path) -> Iterator[sf.Publisher]:
    with sf.Publisher(source(), ledger=tmp_path / "b.db", account="a", budget="3") as opened:
        yield opened


@pytest.mark.parametrize(
    ("value", "by", "increment", "kind"),
    [
        (1, None, -1, sf.UsageError),
        (1, None, 1.5, sf.UsageError),
        (1, None, True, sf.UsageError),
        (1, None, "many", sf.UsageError),
        (1, None, 2**60, sf.UsageError),
        (1, "kind", 3, sf.UsageError),
        (1, "kind", {"a": -1}, sf.UsageError),
        (1, "kind", [["a"]], sf.UsageError),
        (sf.Interval(0, 1), None, "0.5", sf.DataError),
        (sf.Interval(0, 1), None, [0.5, True], sf.DataError),
        (sf.Interval(0, 1), None, [0.5, "918273"], sf.DataError),
        (sf.Interval(0, 1), "kind", [0.5], sf.UsageError),
    ],
)
def test_wrong_increments_are_refused_and_take_no_step(
    publisher: sf.Publisher, value: object, by: str | None, increment: object, kind: type
) -> None:
    with publisher.open(sf.Counter(5, value=value, by=by), epsilon="1", key="k") as stream:  # type: ignore[arg-type]
        with pytest.raises(kind) as refusal:
            stream.push(increment)
        assert len(refusal.value.args) == 3
        assert "918273" not in str(refusal.value)
        assert stream.step == 0


def test_missing_values_are_dropped(publisher: sf.Publisher) -> None:
    """A refusal would tell of one person's missing value, at no cost and as often as one likes."""
    missing = [None, float("nan"), np.nan, Decimal("NaN"), pd.NA, pd.NaT]
    with (
        override(Scripted()),
        publisher.open(
            sf.Counter(9, value=sf.Interval(0, 4, step=1)), epsilon="1", key="k"
        ) as stream,
    ):
        assert [stream.push(one).value for one in missing] == [0] * len(missing)
        assert stream.push([1, *missing, 3, 10**400, -(10**400)]).value == 8
    with (
        override(Scripted()),
        publisher.open(
            sf.Counter(9, value=sf.Interval(0, 4, step=1), by="kind"), epsilon="1", key="l"
        ) as stream,
    ):
        assert stream.push([("a", 1), ("b", None), ("a", math.nan)]).value.tolist() == [1, 0, 0]
        assert stream.push({"a": [None, 2], "b": math.nan}).value.tolist() == [3, 0, 0]


def test_names_that_are_nearly_numbers_are_compared_as_text(publisher: sf.Publisher) -> None:
    with publisher.open(sf.Counter(9), epsilon="1", key="k") as stream:
        for event in ("--5", "-3", "3", "x"):
            stream.push(1, event=event)


@pytest.mark.parametrize(
    "bounds", [(1, 11, 2), (0.5, 10.5, 1), (1, 4, 3), (-7, -1, 3), (0, 1, 0.01)]
)
def test_values_on_the_lattice_are_counted_as_they_are(bounds: tuple[float, float, float]) -> None:
    low, high, step = bounds
    with sf.Publisher(source(), budget="1") as publisher, override(Scripted()):
        stream = publisher.open(
            sf.Counter(9, value=sf.Interval(low, high, step=step)), epsilon="1", key="k"
        )
        assert stream.push([low] * 1000).value == pytest.approx(1000 * low)
        assert stream.push([low + step]).value == pytest.approx(1001 * low + step)


def test_values_too_far_from_zero_for_their_width_are_refused(publisher: sf.Publisher) -> None:
    with pytest.raises(sf.UsageError, match="more than 2\\^53 units"):
        publisher.open(sf.Counter(9, value=sf.Interval(1e15, 1e15 + 1)), epsilon="1", key="k")
