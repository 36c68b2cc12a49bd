"""What plans pick stays: the noise and the shares of 200 of them stand in a table.

To accept other picks, run ``python tests/publishing/test_picks.py`` and read the difference.
"""

from __future__ import annotations

import hashlib
import itertools
import json
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TypeVar

import pytest

import sfumato as sf
from sfumato.privacy import CentralMeasure
from sfumato.privacy.unit import Limits
from sfumato.publishing.plan import plan_cost
from sfumato.publishing.previews import previews

TABLE = Path(__file__).with_name("picks.json")
NUMBER = 200
PARTS = 8
"""Tests into which the plans are divided: what a plan asks follows from a hash of its number."""

DOMAIN = sf.Domain(
    {f"x{i}": sf.Interval(0, 10, step=1) for i in range(12)}
    | {"age": sf.Interval(0, 100), "shop": sf.Keys(), "ward": sf.Categories(["a", "b", "c"])}
)
PERSON = {"person": "who"}
UNITS = {
    "one row": sf.Unit(),
    "many rows": sf.Unit(12),
    "persons": sf.Unit(4, **PERSON),
    "cells": sf.Unit(12, limits=Limits(rows_per_cell=1, cells_per_person=12), **PERSON),
    "norm": sf.Unit(16, limits=Limits(norm_per_person=4), **PERSON),
    "replaced": sf.Unit(neighbours="replace"),
}
COSTS = (
    {"epsilon": "1"},
    {"epsilon": "0.1", "delta": "1e-9"},
    {"epsilon": "1", "delta": "1e-6"},
    {"epsilon": "3", "delta": "1e-4"},
    {"epsilon": "6", "delta": "1e-5"},
    {"rho": "0.02"},
    {"rho": "1"},
)
OTHERS = (
    sf.Histogram("shop"),
    sf.Mean("age"),
    sf.Sum("age"),
    sf.Variance("age"),
    sf.Quantiles("age"),
    sf.Mean("age", clip="auto"),
    sf.Histogram("age", records=20),
    sf.Histogram("age", bins=20, workload="ranges"),
    sf.Histogram("age", bins=10, noise="bounded"),
    sf.Tables([["x0"], ["x0", "x1"], ["x1", "ward"]]),
    sf.Persons(),
    sf.KMeans(2, ["age"]),
    sf.AutoPartitioner("age"),
    sf.UniformPartitioner("age"),
    sf.PrivTreePartitioner("age"),
    sf.MedianPartitioner("age"),
)
WITHIN_LIMITS = 4  # of the others, those that keep limits by cell
T = TypeVar("T")


class Drawer:
    """Draws what belongs to the plan of a number: the same on every machine and Python."""

    def __init__(self, number: int) -> None:
        self.number = number

    def below(self, bound: int, what: str) -> int:
        digest = hashlib.sha256(f"{self.number} {what}".encode()).digest()
        return int.from_bytes(digest, "big") % bound

    def pick(self, options: Sequence[T], what: str) -> T:
        return options[self.below(len(options), what)]


def histogram(draw: Drawer, i: int) -> sf.Histogram:
    axes = [
        f"x{i % 12}",
        [f"x{i % 12}", f"x{(i + 1) % 12}"],
        ["ward", f"x{i % 12}"],
    ]
    kind = draw.below(4, f"axes {i}")
    if kind == 3:
        return sf.Histogram(f"x{i % 12}", bins=2 + draw.below(9, f"bins {i}"))
    return sf.Histogram(axes[kind])


def shares_of(draw: Drawer, number: int) -> dict[str, object]:
    """How the cost of a plan is divided: nothing said, or one of the ways to say it."""
    widths = [5 + draw.below(200, f"width {i}") for i in range(number)]
    some = [width if i < 3 else None for i, width in enumerate(widths)]
    weights = [1 + draw.below(5, f"weight {i}") for i in range(number)]
    options: list[Callable[[], dict[str, object]]] = [
        dict,
        lambda: {"shares": weights},
        lambda: {"weights": weights},
        lambda: {"minimise": "absolute"},
        lambda: {"minimise": "squared", "weights": weights},
        lambda: {"accuracy": 40},
        lambda: {"accuracy": sf.Within(60, 0.9, True)},
        lambda: {"accuracy": widths},
        lambda: {"accuracy": some},
        lambda: {"accuracy": some, "minimise": "squared", "weights": weights},
    ]
    return draw.pick(options, "shares")()


def picked(number: int) -> dict[str, str]:
    """What the plan of a number picks, or why it is refused, in words."""
    draw = Drawer(number)
    questions: list[sf.Question] = [histogram(draw, i) for i in range(1 + draw.below(8, "tables"))]
    if draw.below(8, "many") == 0:
        questions += [histogram(draw, i) for i in range(8, 24)]
    unit = draw.pick(list(UNITS), "unit")
    others = OTHERS[:WITHIN_LIMITS] if UNITS[unit].limits else OTHERS
    questions += [draw.pick(others, f"other {i}") for i in range(draw.below(3, "others"))]
    options = shares_of(draw, len(questions))
    options["noise"] = draw.pick([*[None] * 8, "laplace", "gaussian"], "noise")
    options["rows"] = draw.pick([None, 5000], "rows")
    cost = draw.pick(COSTS, "cost")
    if isinstance(options.get("accuracy"), int | list | sf.Within) and draw.below(2, "least"):
        cost = {key: value for key, value in cost.items() if key == "delta"}
    rule = draw.pick([*[None] * 4, "pure", "approx", "zcdp"], "rule")
    stated = {"epsilon": None, "delta": 0, "rho": None} | cost
    asked = f"{len(questions)} of {unit}, {rule}, {_text(cost)}, {_text(options)}"
    try:
        plan = sf.Plan(questions, **options)
        choice = previews(plan, DOMAIN, UNITS[unit], plan_cost(plan, **stated), rule=rule).choice
    except sf.SfumatoError as refusal:
        return {"asked": asked, "refused": f"{type(refusal).__name__}: {refusal}"}
    if choice is None:
        return {"asked": asked, "picked": "nothing"}
    return {
        "asked": asked,
        "cost": str(choice.cost),
        "costs": ", ".join(_runs(choice.costs)),
        "in_rho": ", ".join(_spans(choice.in_rho)),
        "block": str(choice.block),
    }


def _text(options: dict[str, object]) -> str:
    return " ".join(f"{key}={value}" for key, value in options.items() if value is not None)


def _runs(costs: Iterable[CentralMeasure]) -> list[str]:
    """Costs, equal ones beside each other once, with their number."""
    groups = [(cost, len(list(equal))) for cost, equal in itertools.groupby(map(_short, costs))]
    return [cost if number == 1 else f"{number} x {cost}" for cost, number in groups]


def _short(cost: CentralMeasure) -> str:
    match cost:
        case sf.ZCDP():
            return f"rho {cost.rho}"
        case sf.ApproxDP():
            return f"epsilon {cost.epsilon} delta {cost.delta}"
        case sf.PureDP():
            return f"epsilon {cost.epsilon}"


def _spans(places: Sequence[int]) -> list[str]:
    spans: list[list[int]] = []
    for place in places:
        if spans and spans[-1][-1] == place - 1:
            spans[-1][1:] = [place]
        else:
            spans.append([place])
    return ["-".join(map(str, span)) for span in spans]


@pytest.mark.parametrize(
    "first", [0, *(pytest.param(k, marks=pytest.mark.deep) for k in range(1, PARTS))]
)
def test_the_picks_of_two_hundred_plans_stay(first: int) -> None:
    """Every eighth of them, and in ``make deep`` the others."""
    picks = json.loads(TABLE.read_text(encoding="utf-8"))
    assert len(picks) == NUMBER
    assert list(map(picked, range(first, NUMBER, PARTS))) == picks[first::PARTS]


def write() -> None:
    lines = ",\n".join(json.dumps(picked(number)) for number in range(NUMBER))
    TABLE.write_text(f"[\n{lines}\n]\n", encoding="utf-8")


if __name__ == "__main__":
    write()
