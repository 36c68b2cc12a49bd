"""Bins as users write them: numbers, edges and widths, for one axis, for all, or by name."""

from __future__ import annotations

import datetime as dt

import numpy as np
import pytest

import sfumato as sf
from questions.histogram import ages
from questions.histogram.tables import DOMAIN, answer
from sfumato.audit.runs import Scripted
from sfumato.basics.structs import from_bytes, from_plain, to_bytes
from sfumato.errors import UsageError
from sfumato.questions.histogram import Histogram


@pytest.mark.parametrize(
    ("axes", "bins", "shape"),
    [
        ("age", None, (10,)),
        ("age", 4, (4,)),
        ("age", [0, 18, 65, 100], (3,)),
        ("age", np.array([0.0, 18.0, 65.0]), (2,)),
        ("hour", None, (24,)),
        ("hour", 6, (6,)),
        ("day", None, (14,)),
        ("day", 2, (2,)),
        ("day", [dt.date(2013, 1, 1), "2013-01-08", dt.date(2013, 1, 15)], (2,)),
        ("kind", None, (3,)),
        (["age", "kind"], 5, (5, 3)),
        (["age", "hour"], [4, 6], (4, 6)),
        (["age", "kind", "hour"], [4, [0, 12, 24]], (4, 3, 2)),
        (["age", "hour"], {"hour": 6}, (10, 6)),
        (["hour", "age"], {"hour": 6, "age": [0, 50, 100]}, (6, 2)),
        (["age", "hour"], 3, (3, 3)),
    ],
    ids=str,
)
def test_forms_of_bins(axes, bins, shape):
    question = Histogram(axes, bins)
    assert question.needs(DOMAIN).lattice.shape == shape
    assert answer(question).values.shape == shape
    assert (
        from_plain({"axes": axes} | ({} if bins is None else {"bins": question.bins}), Histogram)
        == question
    )
    assert from_bytes(to_bytes(question), Histogram).needs(DOMAIN) == question.needs(DOMAIN)


@pytest.mark.parametrize("bins", [True, "ten", 2.5, b"ten", {1, 2}], ids=repr)
def test_bins_of_another_kind(bins):
    with pytest.raises(UsageError):
        Histogram("age", bins)


def test_counts_land_where_the_edges_say():
    rows = (
        (0.0,),
        (17.999,),
        (18.0,),
        (64.9,),
        (65.0,),
        (100.0,),
        (-5.0,),
        (1e9,),
        (float("nan"),),
    )
    release = answer(Histogram("age", [0, 18, 65, 100]), rows, noise=Scripted())
    assert release.values.tolist() == [3, 2, 3]


@pytest.mark.parametrize(
    ("axis", "width", "edges"),
    [
        (sf.Interval(0, 100), 25, [0, 25, 50, 75, 100]),
        (sf.Interval(0, 100), "30", [0, 30, 60, 90, 100]),
        (sf.Interval(0, 1), 0.1, [i / 10 for i in range(11)]),
        (sf.Interval("2013-01-01", "2013-01-15"), 7, [15706, 15713, 15720]),
        (
            sf.Interval("2013-01-01T00:00", "2013-01-01T03:00"),
            3600,
            [15706 * 86400e6 + i * 3600e6 for i in range(4)],
        ),
    ],
    ids=str,
)
def test_bins_of_a_width(axis: sf.Interval, width: object, edges: list[float]) -> None:
    domain = sf.Domain(x=axis)
    for question in (sf.Histogram("x", width=width), sf.Histogram("x", width={"x": width})):
        assert question.needs(domain).lattice.axes[0].edges() == pytest.approx(edges, abs=1e-9)
    low = question.needs(domain).lattice.axes[0]
    assert low.locate(np.array([0.3])).tolist() == [3] if axis.upper == 1 else True


@pytest.mark.parametrize(
    "more",
    [
        {"width": 0},
        {"width": 100},
        {"width": 1, "bins": 3},
        {"width": "a"},
        {"width": {"kind": 1}},
        {"width": 1e-9},
    ],
)
def test_widths_that_make_no_sense(more: dict) -> None:
    with pytest.raises(sf.UsageError):
        sf.Histogram("age", **more).needs(ages.DOMAIN)
