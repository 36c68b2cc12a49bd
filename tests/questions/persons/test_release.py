"""What follows from numbers of persons: how many there are, and what every limit leaves out."""

from __future__ import annotations

import re
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import sfumato as sf
from questions.persons.tables import (
    binned,
    flights,
    law_at,
    lognormal,
    pareto,
    release_of,
    spread_of,
)
from sfumato.basics.numbers import Array
from sfumato.mechanisms.noise import DiscreteGaussian, Law
from sfumato.random import PublicSeed

ROWS = np.minimum(pareto(3000), 100)


def test_the_number_of_persons_is_within_its_interval() -> None:
    found = release_of(ROWS).persons("0.999")
    assert found.low <= len(ROWS) <= found.high
    assert found.low >= 0


@pytest.mark.parametrize("limit", [1, 2, 7, 10, 11, 60, 99, 100])
def test_limits_affect_as_many_persons_as_have_more_rows(limit: int) -> None:
    found = release_of(ROWS).affected(limit, "0.9999")
    assert found.low <= (limit < ROWS).sum() <= found.high
    assert found.low <= found.value <= found.high


def test_the_interval_is_narrowest_at_the_end_of_a_bin() -> None:
    release = release_of(lognormal(5000))
    at_end = release.affected(8)
    within = release.affected(7)
    assert at_end.high - at_end.low < within.high - within.low


@pytest.mark.parametrize("limit", [1, 3, 7, 40])
def test_limits_keep_their_share_of_the_rows(limit: int) -> None:
    found = release_of(ROWS).kept(limit, "0.999")
    assert found.low <= np.minimum(ROWS, limit).sum() / ROWS.sum() <= found.high
    assert found.low <= found.value <= found.high


def test_of_nobody_nothing_is_known() -> None:
    release = release_of(np.zeros(0, np.int64), epsilon="0.1")
    found = release.kept(10)
    assert (found.low, found.high) == (0.1, 1)
    assert not found.known
    assert release.persons().low == 0


@pytest.mark.parametrize("limit", [0, -1, 2.5, "ten", 10**10, True])
def test_a_limit_is_a_whole_number(limit: object) -> None:
    with pytest.raises(sf.UsageError, match="per person is a whole number"):
        release_of(ROWS).affected(limit)  # type: ignore[arg-type]


def test_shares_need_a_bound_above_the_limit() -> None:
    with pytest.raises(sf.UsageError, match="nobody has more than 100 rows"):
        release_of(ROWS).kept(101)
    with pytest.raises(sf.UsageError, match="without a bound on a person's rows"):
        release_of(ROWS, most_rows=None).kept(10)
    with pytest.raises(sf.UsageError, match="are counted together"):
        release_of(ROWS, most_rows=None).affected(10**5)


def test_the_table_has_a_row_for_each_bin() -> None:
    frame = release_of(ROWS).to_frame().to_pylist()
    assert [row["rows"] for row in frame][:8] == ["1", "2", "3", "4", "5", "6", "7 to 8", "9 to 10"]
    assert frame[-1]["rows"] == "81 or more"
    assert frame[-1]["kept"] == 1
    open_ended = release_of(ROWS, most_rows=None).to_frame().to_pylist()
    assert open_ended[-1]["limit"] is None
    assert {row["kept"] for row in open_ended} == {None}


def test_its_sentences_say_what_limits_leave_out() -> None:
    release = release_of(ROWS, epsilon="5")
    sentence = release.sentence(20)
    assert sentence.startswith("At most 20 rows of each person are counted: ")
    assert "of the rows are kept" in sentence
    assert "if nobody has more than 100 rows" in sentence
    assert "rows are kept" not in release_of(ROWS, most_rows=None).sentence(20)
    assert release.facts[0].startswith("There are ")
    assert all(
        re.search("rows? of each person (is|are) counted, ", fact) for fact in release.facts[1:]
    )


@pytest.mark.parametrize("most_rows", [100, None])
def test_it_is_drawn(most_rows: int | None) -> None:
    ax = release_of(ROWS, most_rows=most_rows).plot()
    assert ax.get_xlabel() == "limit on rows per person"
    assert ax.get_ylabel() == ("rows kept" if most_rows else "persons with more rows")


def test_a_file_whose_numbers_do_not_fit_is_refused() -> None:
    release = release_of(ROWS)
    with pytest.raises(sf.UsageError, match="do not fit its bins"):
        sf.PersonsRelease(
            most_rows=7,
            domain=(),
            counts=release.counts,
            law=release.law,
            guarantee=release.guarantee,
        )


@pytest.mark.parametrize("of", ["cells", "norm", "largest-cell"])
def test_what_was_measured_in_cells_says_so(of: Any) -> None:
    release = spread_of(ROWS, of, 100)
    measured = release.measured
    assert release.most == 100
    assert all(f" {measured.beyond}" in fact for fact in release.facts[1:])
    assert measured.limit in ("cells_per_person", "norm_per_person", "rows_per_cell")
    frame = release.to_frame()
    assert frame.column_names[0] == of.replace("-", "_")
    assert ("kept" in frame.column_names) == (of == "cells")
    ax = release.plot()
    assert ax.get_xlabel() == measured.axis
    assert ax.get_ylabel() == ("cells kept" if of == "cells" else f"persons with {measured.more}")
    found = release.affected(20, "0.9999")
    assert found.low <= (ROWS > 20).sum() <= found.high


def test_shares_of_cells_need_no_stated_bound() -> None:
    cells = np.minimum(ROWS, 24)
    release = spread_of(cells, "cells", 24)
    found = release.kept(5, "0.999")
    assert found.low <= np.minimum(cells, 5).sum() / cells.sum() <= found.high
    assert "if nobody" not in release.sentence(5)
    assert "of the pairs of one person and a cell are kept" in release.sentence(5)
    assert release.to_frame()["cells"].to_pylist()[-1] == "21 to 24"


def test_no_share_of_rows_follows_from_norms() -> None:
    with pytest.raises(sf.UsageError, match="does not follow from it"):
        spread_of(ROWS, "norm").kept(10)


def answers(
    rows: Array, most_rows: int, law: Law, trials: int, *, added: Law | None = None
) -> list[sf.PersonsRelease]:
    """Many answers about the same persons. ``added``: the noise is of another law than stated."""
    counts = binned(rows, most_rows)
    drawn = (added or law).sample(trials * len(counts), PublicSeed(5)).reshape(trials, -1)
    guarantee = release_of(rows[:1], most_rows).guarantee
    return [
        sf.PersonsRelease(
            most_rows=most_rows, domain=(), counts=counts + noise, law=law, guarantee=guarantee
        )
        for noise in drawn
    ]


def missed(estimates: list[sf.Estimate], truth: float) -> float:
    """The share of intervals that the truth lies outside of."""
    outside = [not float(each.low) <= truth <= float(each.high) for each in estimates]
    return float(np.mean(outside))


def test_intervals_of_affected_persons_miss_as_rarely_as_stated() -> None:
    trials = 200
    found = [each.affected(10, "0.8") for each in answers(ROWS, 100, law_at("0.3"), trials)]
    standard_error = np.sqrt(0.2 * 0.8 / trials)
    misses = missed(found, int((ROWS > 10).sum()))
    assert misses <= 0.2 + 4 * standard_error
    assert misses >= 0.2 - 6 * standard_error


TRIALS = 10_000
STANDARD_ERROR = float(np.sqrt(0.05 * 0.95 / TRIALS))


@pytest.mark.deep
@pytest.mark.parametrize(
    ("name", "most_rows", "limit"),
    [("flights", 1000, 400), ("pareto", 4096, 10), ("0", 100, 10), ("1", 100, 2), ("50", 100, 10)],
)
@pytest.mark.parametrize("noise", ["laplace", "gaussian"])
def test_coverage_of_persons(
    name: str,
    most_rows: int,
    limit: int,
    noise: str,
    evidence: Callable[[str, object], None],
) -> None:
    """Aircraft, 10^4 persons with a power law of rows, and few of them: 10^4 answers each."""
    populations = {"flights": flights, "pareto": lambda: pareto(10_000)}
    rows = populations[name]() if name in populations else pareto(int(name))
    rows = np.minimum(rows, most_rows)
    law = law_at("0.3") if noise == "laplace" else DiscreteGaussian(Fraction(100, 9))
    found = answers(rows, most_rows, law, TRIALS)
    kept = [each.kept(limit) for each in found]
    share = float(np.minimum(rows, limit).sum() / rows.sum()) if len(rows) else 1.0
    ends = np.array([(each.low, each.high) for each in kept], float)
    figures = {
        "limit": limit,
        "rows kept": round(share, 4),
        "coverage of rows kept": 1 - missed(kept, share),
        "their interval in the median": np.median(ends, axis=0).round(4).tolist(),
        "lower end in 19 of 20 answers": round(float(np.quantile(ends[:, 0], 0.05)), 4),
        "coverage of persons affected": 1
        - missed([each.affected(limit) for each in found], int((rows > limit).sum())),
        "coverage of persons": 1 - missed([each.persons() for each in found], len(rows)),
    }
    evidence(f"coverage_of_persons_{name}_{noise}", figures)
    for figure, value in figures.items():
        if figure.startswith("coverage"):
            assert float(value) >= 0.95 - 4 * STANDARD_ERROR  # type: ignore[arg-type]
    if name == "flights":
        assert float(figures["lower end in 19 of 20 answers"]) >= 0.95  # type: ignore[arg-type]


@pytest.mark.deep
def test_intervals_fail_where_noise_is_twice_as_wide_as_stated() -> None:
    """Persons with one row or two, whom bins hide nothing of."""
    rows = np.repeat([1, 2], [400, 400])
    found = answers(rows, 2, law_at("0.2"), TRIALS, added=law_at("0.1"))
    assert missed([each.kept(1) for each in found], 2 / 3) > 0.05 + 4 * STANDARD_ERROR
    assert missed([each.affected(1) for each in found], 400) > 0.05 + 4 * STANDARD_ERROR
    assert missed([each.persons() for each in found], 800) > 0.05 + 4 * STANDARD_ERROR
