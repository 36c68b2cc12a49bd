"""Increments of streams that differ in one person give the same artefacts.

The mechanisms publish the same for both.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import pytest

import sfumato as sf
from support.artefacts import World, assert_same, both

Step = list[tuple[str | None, str | None, float | None]]  # rows of a step: who, category, value
OTHERS: list[Step] = [
    [(f"p{i + 3 * day}", "ab"[i % 2], float(i % 5)) for i in range(2 + day)] for day in range(5)
]
PERSON: tuple[list[Step], list[Step]] = (
    [[("p99", "a", 1.0)], [], [], [], []],
    [
        [("p99", "b", 4.0)] * 7,
        [],
        [("p99", "not listed", 1e300), ("p99", "a", -1e19), ("p99", None, float("nan"))],
        [("p99", "b", 2.5)] * 30 + [("p98", "a", None), (None, "b", 1.0), (None, None, None)],
        [("someone", "a", 3.0)],
    ],
)
DAYS = sf.Calendar("2026-01-01", "2026-01-05")

COUNTERS: dict[str, tuple[Any, dict[str, Any]]] = {
    "tree": (sf.Counter(5), {"epsilon": 1}),
    "tree without end": (sf.Counter(None), {"epsilon": 1}),
    "toeplitz": (sf.Counter(5, method="toeplitz"), {"rho": 1}),
    "blt": (sf.Counter(5, method="blt"), {"rho": 1}),
    "gaussian": (sf.Counter(5), {"epsilon": 1, "delta": "1e-6"}),
    "by category": (sf.Counter(5, by="kind"), {"epsilon": 1}),
    "sums": (sf.Counter(5, value=sf.Interval(0, 4)), {"epsilon": 1}),
    "sums by category": (sf.Counter(5, value=sf.Interval(0, 4, step=1), by="kind"), {"rho": 1}),
    "calendar": (sf.Counter(DAYS, by="kind"), {"epsilon": 1}),
    "named steps": (sf.Counter(("mon", "tue", "wed", "thu", "fri")), {"epsilon": 1}),
}


def steps(which: int) -> list[Step]:
    return [others + own for others, own in zip(OTHERS, PERSON[which], strict=True)]


def brought(counter: sf.Counter, rows: Step) -> Any:
    """What a user would push."""
    labels, values = [label for _, label, _ in rows], [value for _, _, value in rows]
    sums = not isinstance(counter.value, int)
    if counter.by is not None:
        return list(zip(labels, values, strict=True)) if sums else labels
    return values if sums else len(rows)


def source(person: str | None) -> sf.Source:
    domain = sf.Domain(kind=sf.Categories(["a", "b"], other="rest"))
    import pyarrow as pa

    empty = pa.table({"kind": pa.array([], pa.string()), "who": pa.array([], pa.string())})
    return sf.source(empty, domain, person=person, rows_per_person=2, name="visits")


@pytest.mark.parametrize("person", ["who", None])
@pytest.mark.parametrize("name", COUNTERS)
def test_every_counter(name: str, person: str | None, tmp_path: Path) -> None:
    counter, cost = COUNTERS[name]

    def push(stream: sf.Stream, rows: Step, event: str | None) -> object:
        return stream.push(
            brought(counter, rows),
            event=event,
            persons=None if person is None else [owner for owner, _, _ in rows],
        )

    def run(here: World, table: list[Step]) -> None:
        with sf.Publisher(
            source(person),
            ledger=here.ledger,
            budget=sf.ZCDP(9) if "rho" in cost else sf.ApproxDP(9, ".5"),
        ) as pub:
            here.call("preview", lambda: str(pub.preview(counter, **cost)))
            stream = here.call("open", lambda: pub.open(counter, key="visits", **cost))
            for day, rows in enumerate(table, 1):
                here.call(
                    "push",
                    partial(
                        push, stream, rows, f"2026-01-{day:02d}" if name == "calendar" else None
                    ),
                )
            here.call("beyond", partial(push, stream, table[0], None))
            here.call("advance", stream.advance)
            here.call("history", lambda: (list(stream), stream.history(), stream, stream.remaining))
            again = here.call("resumed", lambda: pub.open(counter, key="visits", **cost))
            here.call("resumed history", again.history)
            here.call("log", lambda: list(pub.ledger.log()))

    seen = assert_same(both(tmp_path / "w", lambda here, which: steps(which), run))
    assert {name.split(": ")[0][3:] for name in seen if name.endswith("raised")} <= {
        "beyond",
        "advance",
    }
