"""Every statement of the demo's report is true, checked by somebody who has all rows.

A statement with 95% confidence is checked at 1 - 1e-9, so that a true one fails once in 10^9 runs
or less. The rows counted are a random choice of each aircraft's rows. So the true count of a cell
is only known between two ends: all rows, and all but those of aircraft beyond the limit. A true
mean is known between two ends likewise: without the largest of the rows left out, and without the
smallest.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
import pytest

from demo.reading import (
    ALPHA,
    DELAY_NAMES,
    DELAYS,
    DELAYS_BY_CARRIER,
    DELAYS_BY_HOUR,
    DESTINATIONS,
    MEAN_BY_CARRIER,
    MEAN_BY_HOUR,
    MEDIANS,
    SURE,
    TABLES,
    TOTALS,
    Answer,
    near,
    numbers,
)
from sfumato.demo import AIRPORTS, CARRIER_NAMES, CARRIERS, run
from sfumato.questions.quantiles.methods import half_width

# --- the numbers ---


def test_delays_are_near_the_truth(
    pages: list[Answer], demo: run.Demo, delays: pd.DataFrame
) -> None:
    release, shown = demo.releases[DELAYS], pages[DELAYS].rows
    edges = np.linspace(-60, 240, 31)
    where = np.digitize(delays.dep_delay, edges[1:-1])
    all_rows = np.bincount(where, minlength=30)
    kept = np.bincount(where[~delays.beyond], minlength=30)
    assert [row[0] for row in shown] == [
        "-51 and below",
        *[f"{a:g} to {a + 9:g}" for a in edges[1:-2]],
        "230 and above",
    ]
    assert near(numbers(shown, 1), release.accuracy(SURE, simultaneous=True), kept, all_rows)
    # The bins at the ends hold what their names say.
    assert all_rows[0] == (delays.dep_delay < -50).sum()
    assert all_rows[-1] == (delays.dep_delay >= 230).sum()


def test_delays_by_carrier_and_by_time_of_day(
    pages: list[Answer], demo: run.Demo, delays: pd.DataFrame
) -> None:
    hours = [f"{h} to {h + 2}" for h in range(3, 21, 3)]
    carrier = delays.carrier.map({name: i for i, name in enumerate(CARRIERS)}).to_numpy()
    for index, first, names in (
        (DELAYS_BY_CARRIER, carrier, list(CARRIER_NAMES.values())),
        (
            DELAYS_BY_HOUR,
            delays.hour.to_numpy() // 3,
            ["2 and below", *hours, "21 and above"],
        ),
    ):
        release, shown = demo.releases[index], pages[index].rows
        # The two axes stand across each other.
        assert [row[0] for row in shown] == names
        assert {len(row) for row in shown} == {1 + len(DELAY_NAMES)}
        cell = first * 4 + delays.late.to_numpy()
        size = len(names) * 4
        all_rows = np.bincount(cell, minlength=size)
        kept = np.bincount(cell[~delays.beyond.to_numpy()], minlength=size)
        half = release.accuracy(SURE, simultaneous=True).reshape(-1)
        counts = np.column_stack([numbers(shown, 1 + i) for i in range(len(DELAY_NAMES))])
        assert near(counts.reshape(-1), half, kept, all_rows)
        # A quarter of the counts are larger than their error, so that the picture shows something.
        assert 0.25 <= float(np.mean(all_rows > release.accuracy().max())) <= 1


def by_carrier(table: pd.DataFrame) -> np.ndarray:
    """The number of rows of each carrier."""
    return table.groupby("carrier").size().reindex(CARRIERS, fill_value=0).to_numpy()


def test_medians_that_are_known_are_near_and_others_are_marked(
    pages: list[Answer], demo: run.Demo, delays: pd.DataFrame
) -> None:
    release: Any = demo.releases[MEDIANS]
    (method,) = release.axis_methods.values()
    rank_error = half_width(method, ALPHA / 16)
    lost = int(delays.beyond.sum())
    sizes = by_carrier(delays)
    kept = by_carrier(delays[~delays.beyond])
    off = method.rank_noise.rows_half_width(2, ALPHA / 16)
    assert near(release.rows, off, kept, sizes)
    for carrier, row in zip(CARRIERS, pages[MEDIANS].rows, strict=True):
        assert (row[0], row[1]) == (CARRIER_NAMES[carrier], "0.5")
        if row[-1] == "yes":
            values = delays.dep_delay[delays.carrier == carrier].to_numpy().clip(-60, 239)
            shown = float(row[2].replace("−", "-"))
            below, up_to = (values < shown).sum(), (values <= shown).sum()
            assert below - rank_error - lost <= len(values) / 2 <= up_to + rank_error + lost
    marked = int((~release.known).sum())
    assert (
        f"{marked} of 16 values are not known: their labels have too few rows."
        in pages[MEDIANS].accuracy
    )
    assert [row[-1] for row in pages[MEDIANS].rows] == [
        "yes" if known else "no" for known in release.known.reshape(-1)
    ]
    # Rows surely lie on both sides of the value, or its rank error is surely within the rows.
    side = method.rank_noise.rows_half_width(1, 0.025)
    surely = release.rows - method.rank_noise.rows_half_width(2, 0.025)
    known = (release.gaps.reshape(-1, 2) > side).all(axis=1)
    known |= surely / 2 > half_width(method, 0.0125)
    assert release.known.reshape(-1).tolist() == known.tolist()


@pytest.mark.parametrize(
    ("index", "column", "groups"),
    [(MEAN_BY_CARRIER, "carrier", CARRIERS), (MEAN_BY_HOUR, "hour", range(24))],
)
def test_means_are_near_the_truth(
    pages: list[Answer],
    demo: run.Demo,
    delays: pd.DataFrame,
    limit: int,
    index: int,
    column: str,
    groups: Sequence[str | int],
) -> None:
    release: Any = demo.releases[index]
    shown = pages[index].rows
    names = [str(h) for h in range(24)]
    names[0] = "0 and below"
    names[-1] = "23 and above"
    assert [row[0] for row in shown] == (
        names if column == "hour" else list(CARRIER_NAMES.values())
    )
    low, high = release.interval(SURE, simultaneous=True)
    rows_low, rows_high = rows_bounds(release)
    for at, group in enumerate(groups):
        of_group = delays[delays[column] == group]
        values = np.sort(of_group.dep_delay.to_numpy().clip(-60, 239))
        lost = most_left_out(of_group, delays, limit)
        assert rows_low[at] <= len(values)
        assert rows_high[at] >= len(values) - lost
        if len(values) > lost:
            assert low[at] - 1e-9 <= values[lost:].mean()
            assert high[at] + 1e-9 >= values[: len(values) - lost].mean()
    known, low, high = release.drawn()
    check_the_table_of_means(shown, release, known, low, high)
    unknown = int(np.isnan(release.values).sum())
    assert f"{unknown} of {len(groups)} are not known." in pages[index].accuracy
    # Half of the rows of the table are known, so that the picture shows something.
    assert known.mean() >= 0.5


def check_the_table_of_means(
    shown: list[list[str]], release: Any, known: np.ndarray, low: np.ndarray, high: np.ndarray
) -> None:
    """The page shows what the release says, and a mean only where it is known."""
    assert [row[-1] for row in shown] == ["yes" if each else "no" for each in known]
    assert np.allclose(numbers(shown, 1), np.rint(release.counts))
    # The most exact mean has two digits of its half-width, and all have as many decimals; ends of
    # intervals are rounded outwards.
    digit = 10.0 ** (math.floor(math.log10(((high - low) / 2).min())) - 1)
    digit = min(digit, 1.0)
    below = low - numbers(shown, 3)
    above = numbers(shown, 4) - high
    assert ((below >= -1e-5 * digit) & (below <= digit)).all()
    assert ((above >= -1e-5 * digit) & (above <= digit)).all()
    of_known = [row for row in shown if row[-1] == "yes"]
    assert np.abs(numbers(of_known, 2) - release.values[known]).max() <= 0.51 * digit
    assert all(row[2] == "not known" for row in shown if row[-1] == "no")


def rows_bounds(release: Any) -> tuple[np.ndarray, np.ndarray]:
    """The noisy numbers of rows, give or take what the noise of two sums can be."""
    half_width = 2 * release.law.half_width(ALPHA / 100) / release.basis.unity
    return release.counts - half_width, release.counts + half_width


def most_left_out(of_group: pd.DataFrame, delays: pd.DataFrame, limit: int) -> int:
    """How many rows of a group the limit leaves out at most."""
    of_each = delays.groupby("tailnum").size()
    in_group = of_group.groupby("tailnum").size()
    beyond = (of_each[in_group.index] - limit).clip(lower=0)
    return int(np.minimum(beyond, in_group).sum())


def test_destinations_are_real_and_near_the_truth(
    pages: list[Answer], demo: run.Demo, flights: pd.DataFrame, limit_of_destinations: int
) -> None:
    release: Any = demo.releases[DESTINATIONS]
    held = flights[flights.tailnum.notna()]
    all_rows = held.groupby("dest").size()
    few = held[held.groupby("tailnum").tailnum.transform("size") <= limit_of_destinations]
    kept = few.groupby("dest").size().reindex(all_rows.index, fill_value=0)
    shown = [row[0] for row in pages[DESTINATIONS].rows]
    # No destination is shown that nobody flew to.
    assert set(shown) <= set(all_rows.index)
    # About 46 of 104 are shown on average.
    assert len(shown) > 20
    low, high = release.interval(SURE, simultaneous=True)
    assert (low <= all_rows[shown].to_numpy()).all()
    assert (high >= kept[shown].to_numpy()).all()


def test_tables_agree_in_every_common_margin_and_are_near_the_truth(
    pages: list[Answer], demo: run.Demo, flights: pd.DataFrame, limit_of_destinations: int
) -> None:
    release: Any = demo.releases[TABLES]
    assert release.tables == (("carrier", "hour"), ("carrier", "dest"), ("carrier", "origin"))
    for table in release.tables:
        by_carrier = release[table].values.sum(axis=1)
        assert np.allclose(by_carrier, release["carrier"].values, rtol=0, atol=1e-6)
        whole = release[table].published()
        assert (whole >= 0).all()
        assert np.array_equal(whole.sum(axis=1), release["carrier"].published())
        assert whole.sum() == release[()].published()
    held = flights[flights.tailnum.notna()]
    few = held[held.groupby("tailnum").tailnum.transform("size") <= limit_of_destinations]
    low, high = release["carrier", "dest"].interval(SURE, simultaneous=True)
    listed = [*AIRPORTS, "elsewhere"]
    for rows, is_below, end in ((held, True, low), (few, False, high)):
        dest = rows.dest.astype(str).where(rows.dest.isin(AIRPORTS), "elsewhere")
        true = pd.crosstab(rows.carrier, dest).reindex(
            index=list(CARRIERS), columns=listed, fill_value=0
        )
        assert ((end <= true.to_numpy()) if is_below else (end >= true.to_numpy())).all()
    # The page shows the whole numbers, and the sums on the edges.
    names = [row[0] for row in pages[TABLES].rows]
    assert names.count("all") == 6
    assert pages[TABLES].title == "Flights in tables that add up"


def test_running_totals_are_near_the_truth(
    pages: list[Answer], demo: run.Demo, flights: pd.DataFrame
) -> None:
    release: Any = demo.releases[TOTALS]
    days = pd.date_range("2013-01-01", "2013-12-31").date
    counted = (
        flights.groupby(["date", "origin"]).size().unstack(fill_value=0).reindex(days, fill_value=0)
    )
    true = counted[list(release.names)].cumsum().to_numpy()
    assert list(release.events) == [str(day) for day in days]
    assert near(release.values, release.accuracy(SURE, simultaneous=True), true, true)
    assert pages[TOTALS].title == "Flights so far, by airport"


@pytest.mark.parametrize("index", [DELAYS, DELAYS_BY_CARRIER, DELAYS_BY_HOUR, DESTINATIONS])
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
