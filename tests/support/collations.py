"""A table of texts that some collations take to be equal, and what it counts to by bytes."""

from __future__ import annotations

import string

import sfumato as sf
from sfumato.data import count, source

ROWS = [
    ("a", "x", 1.0),
    ("A", "X", 1.0),
    ("á", "x", 2.0),
    (" a", "X", 2.0),
    (None, "x", 1.0),
    ("a", "x", 3.0),
    ("A", "y", 3.0),
    ("á", None, 3.0),
]
"""A kind, a person and a number."""

FEW = sf.Domain(kind=sf.Categories(["a", "A"]), who=sf.Keys(), x=sf.Interval(0, 4))
MANY = sf.Domain(kind=sf.Categories([*string.ascii_letters, "á"]), x=sf.Interval(0, 4))
"""So many labels are joined, and not compared one after another."""


def counted_by_bytes(table: object) -> None:
    """Labels, keys, conditions and persons of the table are told apart by their bytes."""
    kinds, both, keys, numbers = (
        sf.Histogram(axes, bins=4 if "x" in axes else None).needs(FEW)
        for axes in (["kind"], ["kind", "x"], ["who"], ["x"])
    )
    for person, rows, ends in ((None, None, [3, 2]), ("who", 9, [3, 2])):
        src = source(table, FEW, person, rows)
        assert count(src, [kinds])[0].counts.tolist() == ends
        assert count(src, [both])[0].counts.tolist() == [0, 1, 1, 1, 0, 1, 0, 1]
        (cube,) = count(src, [keys])
        assert cube.keys["who"].to_pylist() == ["X", "x", "y"]
        assert cube.counts.tolist() == [2, 4, 1]
    (cube,) = count(source(table, MANY), [sf.Histogram("kind").needs(MANY)])
    counts = dict(zip([*string.ascii_letters, "á"], cube.counts.tolist(), strict=True))
    assert {label: n for label, n in counts.items() if n} == {"a": 3, "A": 2, "á": 2}
    # One row of each of x, X and y is kept.
    bounded = count(source(table, FEW, "who", 1), [numbers])[0]
    assert bounded.total == 3
    satisfying = count(source(table, FEW, where={"kind": ["A"]}), [numbers])[0]
    assert satisfying.counts.tolist() == [0, 1, 0, 1]
