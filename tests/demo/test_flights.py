"""Every statement of the demo's report is true, checked by somebody who has all rows.

A statement with 95% confidence is checked at 1 - 1e-9, so that a true one fails once in 10^9 runs
or less. The rows counted are a random choice of each aircraft's rows. So the true count of a cell
is only known between two ends: all rows, and all but those of aircraft beyond the limit. A true
mean is known between two ends likewise: without the largest of the rows left out, and without the
smallest.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

from demo.reading import (
    ALPHA,
    BY_MONTH,
    DESTINATIONS,
    LATE,
    MEANS,
    QUANTILES,
    SURE,
    TABLES,
    TOTALS,
    Answer,
    near,
    numbers,
)
from sfumato.demo import run
from sfumato.questions.quantiles.methods import half_width


def beyond(table: pd.DataFrame, cells: list[str], norm: int) -> np.ndarray:
    """Whether a row is of an aircraft whose counts in these cells have a greater norm."""
    of_cells = table.groupby(["tailnum", *cells], observed=True).size()
    squares = (of_cells**2).groupby("tailnum", observed=True).sum()
    return table.tailnum.map(squares).to_numpy() > norm**2


# --- the numbers ---


def test_flights_by_month_are_near_the_truth(
    pages: list[Answer], demo: run.Demo, held: pd.DataFrame, norm: int
) -> None:
    release, shown = demo.releases[BY_MONTH], pages[BY_MONTH].rows
    assert [row[0] for row in shown][:2] == ["January", "February"]
    month = held.month.to_numpy()
    all_rows = np.bincount(month, minlength=13)[1:]
    kept = np.bincount(month[~beyond(held, ["month"], norm)], minlength=13)[1:]
    assert near(numbers(shown, 1), release.accuracy(SURE, simultaneous=True), kept, all_rows)
    # The trend can be seen: each number is known to a tenth of its size.
    assert np.max(release.accuracy(simultaneous=True)) < all_rows.min() / 10


def test_late_flights_are_near_the_truth(
    pages: list[Answer], demo: run.Demo, held: pd.DataFrame, norm: int
) -> None:
    release, shown = demo.releases[LATE], pages[LATE].rows
    # The two axes stand across each other.
    assert {len(row) for row in shown} == {3}
    flown = held[held.dep_delay.notna()]
    cell = (2 * flown.part + flown.late).to_numpy()
    all_rows = np.bincount(cell, minlength=12)
    kept = np.bincount(cell[~beyond(flown, ["part", "late"], norm)], minlength=12)
    counts = np.column_stack([numbers(shown, 1), numbers(shown, 2)]).reshape(-1)
    half = release.accuracy(SURE, simultaneous=True).reshape(-1)
    assert near(counts, half, kept, all_rows)
    assert (all_rows > release.accuracy().max()).all()


def test_means_are_near_the_truth(
    pages: list[Answer], demo: run.Demo, held: pd.DataFrame, norm: int
) -> None:
    release: Any = demo.releases[MEANS]
    low, high = release.interval(SURE, simultaneous=True)
    flown = held[held.dep_delay.notna()]
    lost = beyond(flown, ["three_hours"], norm)
    for part in range(6):
        here = (flown.three_hours == part).to_numpy()
        values = np.sort(flown.dep_delay[here].to_numpy().clip(0, 119))
        most_lost = int((here & lost).sum())
        # Cut to the lattice of the bounds, a mean moves by half of its step at most.
        assert low[part] - 0.5 <= values[most_lost:].mean()
        assert high[part] + 0.5 >= values[: len(values) - most_lost].mean()
    assert not np.isnan(release.values).any()
    assert [row[-1] for row in pages[MEANS].rows] == ["yes"] * 6


def test_quantiles_are_near_those_of_the_truth(
    pages: list[Answer], demo: run.Demo, held: pd.DataFrame, limit: int
) -> None:
    release: Any = demo.releases[QUANTILES]
    (method,) = release.axis_methods.values()
    rank_error = half_width(method, ALPHA / 3)
    flown = held[held.dep_delay.notna()]
    of_each = flown.groupby("tailnum", observed=True).size()
    lost = int((of_each - limit).clip(lower=0).sum())
    values = flown.dep_delay.to_numpy().clip(-60, 239)
    for at, shown in zip((0.5, 0.75, 0.9), release.values.reshape(-1), strict=True):
        below, up_to = (values < shown).sum(), (values <= shown).sum()
        assert below - rank_error - lost <= at * len(values) <= up_to + rank_error + lost
    assert [row[-1] for row in pages[QUANTILES].rows] == ["yes"] * 3


def test_destinations_are_real_and_near_the_truth(
    pages: list[Answer], demo: run.Demo, flights: pd.DataFrame
) -> None:
    release: Any = demo.releases[DESTINATIONS]
    true = flights.groupby("dest", observed=True).size()
    shown = [row[0] for row in pages[DESTINATIONS].rows]
    # No destination is shown that nobody flew to. About 90 of 105 are shown.
    assert set(shown) <= set(true.index)
    assert len(shown) > 60
    low, high = release.interval(SURE, simultaneous=True)
    assert (low <= true[shown].to_numpy()).all()
    assert (high >= true[shown].to_numpy()).all()


def test_tables_agree_in_every_common_margin_and_are_near_the_truth(
    pages: list[Answer], demo: run.Demo, held: pd.DataFrame, norm: int
) -> None:
    release: Any = demo.releases[TABLES]
    assert release.tables == (("carrier", "month"), ("origin", "month"))
    for table in release.tables:
        by_month = release[table].values.sum(axis=0)
        assert np.allclose(by_month, release["month"].values, rtol=0, atol=1e-6)
        whole = release[table].published()
        assert (whole >= 0).all()
        assert np.array_equal(whole.sum(axis=0), release["month"].published())
        assert whole.sum() == release[()].published()
    # With so many rows in all, no norm of an aircraft is above the limit.
    few = held[held.groupby("tailnum", observed=True).tailnum.transform("size") <= norm]
    low, high = release["carrier", "month"].interval(SURE, simultaneous=True)
    listed = [*run.LARGE_AIRLINES, "other airlines"]
    for rows, is_below, end in ((held, True, low), (few, False, high)):
        carrier = rows.carrier.astype(str)
        carrier = carrier.where(carrier.isin(run.LARGE_AIRLINES), "other airlines")
        true = pd.crosstab(carrier, rows.month).reindex(index=listed, fill_value=0)
        assert ((end <= true.to_numpy()) if is_below else (end >= true.to_numpy())).all()
    # The page shows the whole numbers, and the sums on the edges.
    names = [row[0] for row in pages[TABLES].rows]
    assert names.count("all") >= 2
    assert pages[TABLES].title == "Flights in tables that add up"


def test_running_totals_are_near_the_truth(
    pages: list[Answer], demo: run.Demo, flights: pd.DataFrame
) -> None:
    release: Any = demo.releases[TOTALS]
    days = pd.date_range("2013-01-01", "2013-12-31").date
    counted = flights.groupby(["date", "origin"], observed=True).size().unstack(fill_value=0)
    true = counted.reindex(days, fill_value=0)[list(release.names)].cumsum().to_numpy()
    assert list(release.events) == [str(day) for day in days]
    assert near(release.values, release.accuracy(SURE, simultaneous=True), true, true)
    assert pages[TOTALS].title == "Flights so far, by airport"


@pytest.mark.parametrize("index", [BY_MONTH, LATE, DESTINATIONS])
def test_the_sentences_of_the_captions_are_those_of_the_numbers(
    pages: list[Answer], demo: run.Demo, index: int
) -> None:
    release: Any = demo.releases[index]
    counts = release.counts
    low, high = (np.asarray(end).reshape(-1) for end in release.interval(simultaneous=True))
    top, seen = int(np.argmax(counts)), int((low > 0).sum())
    alone = int((release.interval()[0] > 0).sum())
    sentence = (
        f"the largest noisy count is {counts[top]:,} "
        f"(between {low[top]:,} and {high[top]:,}) with 95% confidence"
    )
    assert sentence.replace("-", "−") in pages[index].caption
    assert (
        f"{alone} of {len(counts)} counts stand out from the noise, each judged alone; "
        f"judged all at once, {seen}." in pages[index].caption
    )
