"""Every statement of the demo's report is true, checked by somebody who has all rows.

A statement with 95% confidence is checked at 1 - 1e-9, so that a true one fails once in 10^9 runs
or less. The rows counted are a random choice of each aircraft's rows. So the true count of a cell
is only known between two ends: all rows, and all but those of aircraft beyond the limit.
"""

from __future__ import annotations

import html
import re
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest

from sfumato.demo import CARRIERS, cities_path, flights_path, run
from sfumato.quantiles.rank_error import half_width

SURE = 1 - Fraction(1, 10**9)
ALPHA = 1e-9
LIMIT = run.FLIGHTS_PER_AIRCRAFT
LIMIT_OF_DESTINATIONS = run.FLIGHTS_PER_AIRCRAFT_OF_DESTINATIONS
DELAY_NAMES = ["below 0", "0 to 15", "15 to 60", "60 and above"]


@dataclass(frozen=True)
class Answer:
    """One answer as a reader of the page sees it."""

    title: str
    caption: str
    accuracy: str
    rows: list[list[str]]


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> run.Demo:
    return run.publish(tmp_path_factory.mktemp("demo"))


@pytest.fixture(scope="module")
def text(demo: run.Demo) -> str:
    return html.unescape(demo.report.read_text("utf-8"))


@pytest.fixture(scope="module")
def pages(text: str) -> list[Answer]:
    found = []
    for part in re.findall(r'<section aria-labelledby="answer-\d+">.*?</section>', text, re.DOTALL):
        rows = [
            re.findall(r"<td[^>]*>(.*?)</td>", row)
            for row in re.findall(r"<tr>(.*?)</tr>", part, re.DOTALL)
        ]
        found.append(
            Answer(
                title=inside(part, r"<h2[^>]*>(.*?)</h2>"),
                caption=inside(part, r"<figcaption[^>]*>(.*?)</figcaption>"),
                accuracy=inside(part, r"<h3>How accurate it is</h3>\s*<p>(.*?)</p>"),
                rows=[row for row in rows if row],
            )
        )
    return found


def inside(text: str, pattern: str) -> str:
    """The group of the first match."""
    found = re.search(pattern, text, re.DOTALL)
    assert found is not None
    return found[1]


@pytest.fixture(scope="module")
def flights() -> pd.DataFrame:
    table: pd.DataFrame = pq.read_table(flights_path()).to_pandas()
    return table


@pytest.fixture(scope="module")
def delays(flights: pd.DataFrame) -> pd.DataFrame:
    """The flights that questions about delays may count; ``beyond``: of aircraft over the limit."""
    held = flights[flights.tailnum.notna() & flights.dep_delay.notna()].copy()
    held["beyond"] = held.groupby("tailnum").tailnum.transform("size") > LIMIT
    held["late"] = np.digitize(held.dep_delay, run.DELAY_EDGES[1:-1])
    return held


def numbers(cells: list[list[str]], column: int) -> np.ndarray:
    return np.array([float(row[column].replace(",", "").replace("−", "-")) for row in cells])


def near(noisy: Any, half: Any, least: Any, most: Any) -> bool:
    """Whether noisy counts are within their half-width of a truth that lies between two ends."""
    noisy, half, least, most = (np.asarray(x, float) for x in (noisy, half, least, most))
    return bool(((noisy >= least - half) & (noisy <= most + half)).all())


# --- which rows are counted ---


def test_at_most_one_aircraft_in_a_hundred_is_beyond_the_limit(flights: pd.DataFrame) -> None:
    of_each = flights.groupby("tailnum").size()
    assert (of_each > LIMIT).mean() <= 0.01
    assert np.minimum(of_each, LIMIT).sum() / of_each.sum() > 0.99


def test_each_caption_names_its_limit_and_what_is_not_counted(
    pages: list[Answer], demo: run.Demo
) -> None:
    limits = [LIMIT] * 4 + [LIMIT_OF_DESTINATIONS, None, None]
    for page, limit in zip(pages, limits, strict=True):
        if limit is None:
            assert "at most" not in page.caption
            assert page.accuracy.startswith("Of the rows counted, each ")
        else:
            assert (
                f"Of each tailnum at most {limit} rows are counted, chosen at random, "
                "and any further ones are not."
            ) in page.caption
            assert "Rows without a tailnum or without a value" in page.caption
            assert page.accuracy.startswith(
                f"Of the rows counted (at most {limit} a tailnum), each "
            )
        assert "Every accuracy is about the rows counted." in page.caption
    assert len(demo.releases) == len(pages)


def test_no_accuracy_on_the_page_is_about_anything_else(text: str) -> None:
    """Every sentence about an accuracy names the rows counted, in pictures as on the page."""
    # A note in a picture has several lines.
    joined = re.sub(r"</text>[^<]*(?:<(?!text|/svg)[^<]*)*<text[^>]*>", " ", text)
    sentences = re.split(r"[.<>]", joined)
    claims = [one for one in sentences if re.search("within ±|off by at most|hold within", one)]
    assert len(claims) > 10
    assert [claim for claim in claims if "rows counted" not in claim] == []


def test_nothing_is_said_of_how_many_are_left_out(text: str, delays: pd.DataFrame) -> None:
    """The number was not paid for."""
    of_each = delays.groupby("tailnum").size()
    assert f"{int((of_each - np.minimum(of_each, LIMIT)).sum()):,} rows" not in text
    assert "do not say how many these are, unless that was measured privately" in text


def test_accounts_say_what_they_protect(text: str, demo: run.Demo) -> None:
    spent = text[text.index("What was spent") : text.index("Only answers shown")]
    of_aircraft, of_cities, of_flights = spent.split("<h3>Account ")[1:]
    assert of_aircraft.startswith("aircraft-2013")
    assert "It protects any one tailnum, added or removed, with all its rows." in of_aircraft
    assert "bounded by epsilon = 3.5, delta = 0.000001." in of_aircraft
    assert of_flights.startswith("single-flights-2013")
    assert (
        "It protects any single row, added or removed. "
        "A person with several rows is not protected as a whole." in of_flights
    )
    assert "any single row" in of_cities
    units = {
        release.receipt.account: release.guarantee.unit.person
        for release in demo.releases
        if release.receipt is not None
    }
    assert units == {"aircraft-2013": "tailnum", "cities": None, "single-flights-2013": None}


# --- the numbers ---


def test_delays_are_near_the_truth(
    pages: list[Answer], demo: run.Demo, delays: pd.DataFrame
) -> None:
    release, shown = demo.releases[0], pages[0].rows
    edges = np.linspace(-60, 240, 31)
    where = np.digitize(delays.dep_delay, edges[1:-1])
    all_rows = np.bincount(where, minlength=30)
    kept = np.bincount(where[~delays.beyond], minlength=30)
    assert [row[0] for row in shown] == [
        "below -50",
        *[f"{a:g} to {a + 10:g}" for a in edges[1:-2]],
        "230 and above",
    ]
    assert near(numbers(shown, 1), release.accuracy(SURE, simultaneous=True), kept, all_rows)
    # The bins at the ends hold what their names say.
    assert all_rows[0] == (delays.dep_delay < -50).sum()
    assert all_rows[-1] == (delays.dep_delay >= 230).sum()


def test_delays_by_carrier_and_by_time_of_day(
    pages: list[Answer], demo: run.Demo, delays: pd.DataFrame
) -> None:
    hours = [f"{h} to {h + 3}" for h in range(3, 21, 3)]
    carrier = delays.carrier.map({name: i for i, name in enumerate(CARRIERS)}).to_numpy()
    for index, first, names in (
        (1, carrier, list(CARRIERS)),
        (2, delays.hour.to_numpy() // 3, ["below 3", *hours, "21 and above"]),
    ):
        release, shown = demo.releases[index], pages[index].rows
        assert [row[:2] for row in shown] == [
            [name, late] for name in names for late in DELAY_NAMES
        ]
        cell = first * 4 + delays.late.to_numpy()
        size = len(names) * 4
        all_rows = np.bincount(cell, minlength=size)
        kept = np.bincount(cell[~delays.beyond.to_numpy()], minlength=size)
        half = release.accuracy(SURE, simultaneous=True).reshape(-1)
        assert near(numbers(shown, 2), half, kept, all_rows)
        # A quarter of the counts are larger than their error, so that the picture shows something.
        assert 0.25 <= float(np.mean(all_rows > release.accuracy().max())) <= 1


def by_carrier(table: pd.DataFrame) -> np.ndarray:
    """The number of rows of each carrier."""
    return table.groupby("carrier").size().reindex(CARRIERS, fill_value=0).to_numpy()


def test_medians_that_are_known_are_near_and_others_are_marked(
    pages: list[Answer], demo: run.Demo, delays: pd.DataFrame
) -> None:
    release: Any = demo.releases[3]
    (method,) = release.axis_methods.values()
    rank_error = half_width(method, ALPHA / 16)
    lost = int(delays.beyond.sum())
    sizes = by_carrier(delays)
    kept = by_carrier(delays[~delays.beyond])
    assert near(release.rows, release.rows_law.half_width(ALPHA / 16), kept, sizes)
    for carrier, row in zip(CARRIERS, pages[3].rows, strict=True):
        assert (row[0], row[1]) == (carrier, "0.5")
        if row[-1] == "yes":
            values = delays.dep_delay[delays.carrier == carrier].to_numpy().clip(-60, 239)
            shown = float(row[2].replace("−", "-"))
            below, up_to = (values < shown).sum(), (values <= shown).sum()
            assert below - rank_error - lost <= len(values) / 2 <= up_to + rank_error + lost
    marked = int((~release.known).sum())
    assert (
        f"{marked} of 16 values are not known: their labels have too few rows." in pages[3].accuracy
    )
    assert [row[-1] for row in pages[3].rows] == [
        "yes" if known else "no" for known in release.known.reshape(-1)
    ]
    surely = release.rows - release.rows_law.half_width(0.05)
    assert release.known.reshape(-1).tolist() == (surely / 2 > half_width(method, 0.025)).tolist()


def test_destinations_are_real_and_near_the_truth(
    pages: list[Answer], demo: run.Demo, flights: pd.DataFrame
) -> None:
    release: Any = demo.releases[4]
    held = flights[flights.tailnum.notna()]
    all_rows = held.groupby("dest").size()
    few = held[held.groupby("tailnum").tailnum.transform("size") <= LIMIT_OF_DESTINATIONS]
    kept = few.groupby("dest").size().reindex(all_rows.index, fill_value=0)
    shown = [row[0] for row in pages[4].rows]
    # No destination is shown that nobody flew to.
    assert set(shown) <= set(all_rows.index)
    # 46 of 104 are shown on average.
    assert len(shown) > 20
    low, high = release.interval(SURE, simultaneous=True)
    assert (low <= all_rows[shown].to_numpy()).all()
    assert (high >= kept[shown].to_numpy()).all()


def test_cities_are_near_the_truth(demo: run.Demo) -> None:
    release: Any = demo.releases[5]
    table = pq.read_table(cities_path()).select(["longitude", "latitude"])
    points = np.column_stack([table[name].to_numpy() for name in table.column_names])
    true = np.bincount(release.assign(points), minlength=len(release.counts))
    assert near(release.counts, release.accuracy(SURE, simultaneous=True), true, true)


def test_running_totals_are_near_the_truth(
    pages: list[Answer], demo: run.Demo, flights: pd.DataFrame
) -> None:
    release: Any = demo.releases[6]
    days = pd.date_range("2013-01-01", "2013-12-31").date
    counted = (
        flights.groupby(["date", "origin"]).size().unstack(fill_value=0).reindex(days, fill_value=0)
    )
    true = counted[list(release.names)].cumsum().to_numpy()
    assert list(release.events) == [str(day) for day in days]
    assert near(release.values, release.accuracy(SURE, simultaneous=True), true, true)
    assert pages[6].title == "Running total of events by origin"


@pytest.mark.parametrize("index", [0, 1, 2, 4])
def test_the_sentences_of_the_captions_are_those_of_the_numbers(
    pages: list[Answer], demo: run.Demo, index: int
) -> None:
    release: Any = demo.releases[index]
    counts = release.counts
    low, high = (np.asarray(end).reshape(-1) for end in release.interval(simultaneous=True))
    top, seen = int(np.argmax(counts)), int((low > 0).sum())
    sentence = (
        f"the largest noisy count is {counts[top]:,} "
        f"(between {low[top]:,} and {high[top]:,}) with 95% confidence"
    )
    assert sentence.replace("-", "−") in pages[index].caption
    assert (
        f"{seen} of {len(counts)} counts can be told from 0, judged all at once."
        in pages[index].caption
    )
