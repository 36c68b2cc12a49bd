"""Nothing but what the mechanisms said is to be seen.

Two tables that differ in one person give the same artefacts to the last byte.

The mechanisms' outputs are forced equal (``support.replay``), and everything that a release lets
others see is compared (``support.artefacts``). Necessary, not sufficient: that the outputs
themselves are private is shown by the audits.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import sfumato as sf
from sfumato.answers.registry import questions, tag_of
from support.artefacts import World, assert_same, both
from trust.tables import (
    CSV_ONLY,
    DOMAIN,
    EVERYTHING,
    FORMS,
    LIMIT,
    PERSON,
    comma,
    laid,
    numbers,
    parquet,
)

PURE: dict[str, Any] = {
    "known": sf.Histogram(["x", "kind"], bins={"x": 4}),
    "ranges": sf.Histogram(["x", "kind"], bins={"x": 64}, workload="ranges"),
    "records": sf.Histogram("x", records=8),
    "records, rows stated": sf.Histogram("y", records=8, rows=48),
    "mean": sf.Mean("x", by="kind"),
    "sum, clipped": sf.Sum("y", by=["kind", "x"], clip=8),
    "variance": sf.Variance("y"),
    "means of two values, clips chosen": sf.Mean(["x", "y"], by="kind", clip="auto"),
    "mean over persons": sf.Mean("x", by="kind", per="person"),
    "sum over persons": sf.Sum("y", by=["kind", "x"], per="person", clip=(0, 20)),
    "variance over persons": sf.Variance(["x", "y"], by="kind", per="person"),
    "mean over persons, clip chosen": sf.Mean("x", by="kind", per="person", clip="auto"),
    "tables": sf.Tables([["x", "kind"], ["x", "y"], "y"], bins=4),
    "quantiles, joint": sf.Quantiles("x", method="joint"),
    "quantiles, recursive": sf.Quantiles("y", method="recursive"),
    "quantiles, tree": sf.Quantiles("x", method="tree", by="kind"),
    "uniform": sf.UniformPartitioner(["x", "y"]),
    "uniform, given": sf.UniformPartitioner(["x", "y"], partitions=16),
    "adaptive": sf.AdaptiveGridPartitioner(["x", "y"]),
    "privtree": sf.PrivTreePartitioner(["x", "y"]),
    "auto": sf.AutoPartitioner(["x", "y"]),
    "binary": sf.BinaryPartitioner(["x", "y"], depth=4),
    "binary, stopping": sf.BinaryPartitioner(["x", "y"], depth=4, stop_below=8),
    "median": sf.MedianPartitioner(["x", "y"], depth=3),
    "multi-quantile": sf.MultiQuantilePartitioner(["x", "y"], depth=2, fanout=3),
    "k-means, auto": sf.KMeans(3, ["x", "y"]),
    "k-means, eugkm": sf.KMeans(3, ["x", "y"], method="eugkm"),
    "k-means, dplloyd": sf.KMeans(3, ["x", "y"], method="dplloyd"),
    "k-means, privtree": sf.KMeans(3, ["x", "y"], method="privtree"),
}
KEYED: dict[str, Any] = {
    rule: sf.Histogram("shop", selection=rule)  # type: ignore[arg-type]
    for rule in ("truncated-geometric", "threshold", "stability")
} | {
    "bounded noise": sf.Histogram(["x", "kind"], bins={"x": 4}, noise="bounded"),
    "keys beside": sf.Histogram(["shop", "kind"]),
    "mean by keys": sf.Mean("x", by=["shop", "kind"]),
    "tables of residuals": sf.Tables([["x", "kind"], ["kind", "y"]], bins=3),
    "mean over persons by keys": sf.Mean("x", by=["shop", "kind"], per="person"),
}

# Questions that are not tried above by name are tried by their examples, which are over the axis
# "x".
TRIED = {type(question) for question in [*PURE.values(), *KEYED.values()]}
PURE |= {
    f"{tag_of(kind)}, example {i}": question
    for kind in questions()
    if kind not in TRIED
    for i, question in enumerate(kind.examples, 1)
}


def publisher(here: World, table: Any, **more: Any) -> sf.Publisher:
    """A publisher with money enough."""
    src = sf.source(table, DOMAIN, person="who", rows_per_person=LIMIT, **more)
    return sf.Publisher(src, ledger=here.ledger, account="test", budget=sf.ApproxDP(1000, "0.5"))


def every_question(here: World, table: Any) -> None:
    """One release of every kind, by one publisher."""
    with publisher(here, table) as pub:
        for name, question in PURE.items():
            here.call(name, lambda question=question: pub.release(question, epsilon=8))
        for name, question in KEYED.items():
            here.call(
                name, lambda question=question: pub.release(question, epsilon=16, delta="0.01")
            )
        here.call("account", lambda: (pub, pub.source, pub.account, pub.remaining))
        here.call("log", lambda: list(pub.ledger.log()))


def test_every_question(tmp_path: Path) -> None:
    seen = assert_same(both(tmp_path / "w", laid(parquet, EVERYTHING), every_question))
    assert not [name for name in seen if name.endswith("raised")]


def a_few(here: World, table: Any) -> None:
    """Questions that read each kind of column, and a replay."""
    with publisher(here, table) as pub:
        here.call("preview", lambda: (str(pub.preview(PURE["known"], epsilon=1)), repr(pub)))
        here.call(
            "plan", lambda: pub.release([PURE["known"], PURE["quantiles, recursive"]], epsilon=8)
        )
        here.call(
            "keys", lambda: pub.release(KEYED["truncated-geometric"], epsilon=16, delta="0.01")
        )
        here.call(
            "again", lambda: pub.release(KEYED["truncated-geometric"], epsilon=16, delta="0.01")
        )
        here.call("log", lambda: (list(pub.ledger.log()), pub.remaining))


@pytest.mark.parametrize("form", FORMS)
def test_every_form(form: str, tmp_path: Path) -> None:
    seen = assert_same(both(tmp_path / "w", laid(FORMS[form], EVERYTHING), a_few))
    assert not [name for name in seen if name.endswith("raised")]


@pytest.mark.parametrize("person", PERSON)
def test_every_person(person: str, tmp_path: Path) -> None:
    """In text, where a value may do most harm; ``test_search`` takes all forms."""
    seen = assert_same(both(tmp_path / "w", laid(comma, PERSON[person]), a_few))
    assert not [name for name in seen if name.endswith("raised")]


@pytest.mark.parametrize("person", CSV_ONLY)
def test_what_only_text_can_hold(person: str, tmp_path: Path) -> None:
    seen = assert_same(both(tmp_path / "w", laid(comma, CSV_ONLY[person]), a_few))
    assert not [name for name in seen if name.endswith("raised")]


def test_arrays(tmp_path: Path) -> None:
    def run(here: World, table: Any) -> None:
        src = sf.source(table, {name: DOMAIN[name] for name in ("x", "y")})
        with sf.Publisher(src, ledger=here.ledger, budget=100) as pub:
            here.call("map", lambda: pub.release(PURE["auto"], epsilon=8))
            here.call("quantiles", lambda: pub.release(PURE["quantiles, joint"], epsilon=8))

    seen = assert_same(both(tmp_path / "w", numbers(EVERYTHING), run))
    assert not [name for name in seen if name.endswith("raised")]


DATED = sf.Domain(
    x=sf.Interval(0, 16, step=1, missing=True),
    kind=sf.Categories(["a", "b"], column="y"),
    weekday=sf.Weekday("shop", timezone="Europe/Berlin"),
    month=sf.Month("shop", "2024-01", "2024-03", other="another", missing="none"),
)
WHENS = ["2024-03-31T00:59Z", "2024-02-29", "2024-01-01 10:00", "2024-12-31T23:30:00+01:00"]
ODD = ["soon", "", "9999-12-31T23:59:59Z", "0000-01-01", "2024-03-31T02:30", "\x00", "1-1-1"]


def test_derived_axes_and_conditions(tmp_path: Path) -> None:
    """How many rows satisfy a condition shows nowhere, and no odd date does."""
    others: list[Any] = [
        (f"p{i:02d}", str(i % 16), "ab"[i % 2], "", WHENS[i % 4]) for i in range(60)
    ]
    person: list[Any] = [("p99", text, "a", "", when) for text in ("3", "x", "") for when in ODD]

    def lay(here: World, which: int) -> Any:
        return comma(here.data, [*person, *others] if which else others, which)

    def run(here: World, table: Any) -> None:
        where = {"kind": ["a"], "month": ["2024-03", "another", "none"], "x": (2, 9)}
        src = sf.source(table, DATED, person="who", rows_per_person=LIMIT, where=where)
        with sf.Publisher(src, ledger=here.ledger, account="test", budget=1000) as pub:
            for name, question in {
                "weekday": sf.Histogram(["weekday", "month"]),
                "x": sf.Histogram("x"),
                "mean": sf.Mean("x", by="weekday"),
                "persons": sf.Persons(most_rows=12),
            }.items():
                here.call(name, lambda question=question: pub.release(question, epsilon=8))
            here.call("account", lambda: (pub, pub.source, pub.account, list(pub.ledger.log())))

    seen = assert_same(both(tmp_path / "w", lay, run))
    assert not [name for name in seen if name.endswith("raised")]
