"""Every statement of the demo's report is true, checked by somebody who has all rows.

A statement with 95% confidence is checked at 1 - 1e-9, so that a true one fails once in 10^9 runs
or less. The rows counted are a random choice of each aircraft's rows. So the true count of a cell
is only known between two ends: all rows, and all but those of aircraft beyond the limit. A true
mean is known between two ends likewise: without the largest of the rows left out, and without the
smallest.
"""

from __future__ import annotations

import html
import re
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest

from sfumato.answers.estimate import Estimate
from sfumato.answers.loading import load
from sfumato.demo import CARRIERS, cities_path, flights_path, run
from sfumato.disclosure import disclose
from sfumato.histogram import Histogram
from sfumato.ledger import open_ledger
from sfumato.persons import PersonsRelease, recommend
from sfumato.quantiles.rank_error import half_width

SURE = 1 - Fraction(1, 10**9)
ALPHA = 1e-9
# Where each answer stands on the page.
PERSONS = 0
DELAYS = 1
DELAYS_BY_CARRIER = 2
DELAYS_BY_HOUR = 3
MEDIANS = 4
MEAN_BY_CARRIER = 5
MEAN_BY_HOUR = 6
DESTINATIONS = 7
CITIES = 8
TOTALS = 9
DELAY_NAMES = ["below 0", "0 to 15", "15 to 60", "60 and above"]


@dataclass(frozen=True)
class Answer:
    """One answer as a reader of the page sees it."""

    title: str
    caption: str
    accuracy: str
    counted: str
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
    parts = re.findall(
        r'<section class="answer" aria-labelledby="(.*?)">(.*?)</section>', text, re.DOTALL
    )
    counted = inside(text, '<h3 id="counted">Which rows were counted</h3>(.*?)</section>')
    groups = re.findall(r'<p class="small">(.*?)</p>\s*<p>(.*?)</p>', counted, re.DOTALL)
    for anchor, part in parts:
        of_answer = [rows for answers, rows in groups if f'"#{anchor}"' in answers]
        assert len(of_answer) == 1
        body = re.findall(r"<tbody>(.*?)</tbody>", part, re.DOTALL)
        rows = [
            [re.sub("<.*?>", "", field) for field in re.findall(r"<t[dh][^>]*>(.*?)</t[dh]>", row)]
            for row in re.findall(r"<tr>(.*?)</tr>", "".join(body), re.DOTALL)
        ]
        found.append(
            Answer(
                title=inside(part, r"<h2[^>]*><bdi>(.*?)</bdi></h2>"),
                caption="".join(re.findall(r"<figcaption[^>]*>(.*?)</figcaption>", part)),
                accuracy=inside(part, r"<b>How accurate it is.</b> (.*?)</p>"),
                counted=of_answer[0],
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
def persons(demo: run.Demo) -> PersonsRelease:
    """The answer that the limits follow from."""
    release = demo.releases[PERSONS]
    assert isinstance(release, PersonsRelease)
    return release


@pytest.fixture(scope="module")
def limit(demo: run.Demo) -> int:
    """The limit on flights of an aircraft, for delays."""
    return demo.releases[DELAYS].guarantee.unit.rows_per_person


@pytest.fixture(scope="module")
def limit_of_destinations(demo: run.Demo) -> int:
    return demo.releases[DESTINATIONS].guarantee.unit.rows_per_person


@pytest.fixture(scope="module")
def of_each(flights: pd.DataFrame) -> np.ndarray:
    """How many flights each aircraft has."""
    return flights.groupby("tailnum").size().to_numpy()


@pytest.fixture(scope="module")
def delays(flights: pd.DataFrame, limit: int) -> pd.DataFrame:
    """The flights that questions about delays may count; ``beyond``: of aircraft over the limit."""
    held = flights[flights.tailnum.notna() & flights.dep_delay.notna()].copy()
    held["beyond"] = held.groupby("tailnum").tailnum.transform("size") > limit
    held["late"] = np.digitize(held.dep_delay, run.DELAY_EDGES[1:-1])
    return held


def numbers(cells: list[list[str]], column: int) -> np.ndarray:
    return np.array([float(row[column].replace(",", "").replace("−", "-")) for row in cells])


def near(noisy: Any, half: Any, least: Any, most: Any) -> bool:
    """Whether noisy counts are within their half-width of a truth that lies between two ends."""
    noisy, half, least, most = (np.asarray(x, float) for x in (noisy, half, least, most))
    return bool(((noisy >= least - half) & (noisy <= most + half)).all())


def covers(estimate: Estimate, truth: float) -> bool:
    """Whether an interval contains the truth, but for rounding."""
    return estimate.low - 1e-9 <= truth <= estimate.high + 1e-9


# --- how many aircraft there are, and the limits that follow ---


def test_numbers_of_aircraft_are_near_the_truth(
    pages: list[Answer], persons: PersonsRelease, of_each: np.ndarray
) -> None:
    shown = pages[PERSONS].rows
    ends = persons.limits
    assert [row[0] for row in shown] == [
        *[f"{a}" if a == b else f"{a} to {b}" for a, b in pairwise_ends(ends[:-1])],
        f"{ends[-2] + 1} or more",
    ]
    true = np.bincount(np.searchsorted(ends, of_each), minlength=len(ends))
    assert near(numbers(shown, 1), persons.accuracy(SURE, simultaneous=True), true, true)
    assert covers(persons.persons(SURE), len(of_each))
    # Nobody has more flights than the public bound: the shares below rest on it.
    assert of_each.max() <= run.MOST_FLIGHTS


def pairwise_ends(ends: np.ndarray) -> list[tuple[int, int]]:
    """The first and last number of each bin, from the last ones."""
    return list(zip([1, *(ends[:-1] + 1)], ends, strict=True))


def test_what_each_limit_leaves_out_is_near_the_truth(
    persons: PersonsRelease, of_each: np.ndarray, limit: int, limit_of_destinations: int
) -> None:
    for each in [*persons.limits.tolist(), limit, limit_of_destinations]:
        assert covers(persons.affected(each, SURE), (of_each > each).sum())
        assert covers(persons.kept(each, SURE), np.minimum(of_each, each).sum() / of_each.sum())


def test_limits_follow_from_the_first_answer(
    demo: run.Demo, limit: int, limit_of_destinations: int
) -> None:
    """They need nothing but what was published: the file that was saved gives the same."""
    stored = load(demo.saved[PERSONS])
    assert isinstance(stored, PersonsRelease)
    advice = recommend(stored, Histogram("dep_delay", bins=30), epsilon="0.3")
    assert advice.limit == limit
    assert run.limit_of_half(stored) == limit_of_destinations


def test_the_limits_are_of_use(of_each: np.ndarray, limit: int, limit_of_destinations: int) -> None:
    """Noise in the first answer moves them little: about 300, and 50 or 60."""
    assert np.minimum(of_each, limit).sum() / of_each.sum() > 0.9
    assert 0.4 < (of_each > limit_of_destinations).mean() < 0.6


def test_a_second_run_finds_the_ledger_and_pays_nothing(demo: run.Demo) -> None:
    with open_ledger(demo.ledger) as ledger:
        before = ledger.verify()
    again = run.publish(demo.report.parent)
    assert all(release.replayed for release in again.releases[:-1])
    assert again.releases == demo.releases
    assert [release.receipt for release in again.releases] == [
        release.receipt for release in demo.releases
    ]
    with open_ledger(demo.ledger) as ledger:
        assert ledger.verify() == before


# --- which rows are counted ---


def test_most_of_a_disclosure_is_filled_in(demo: run.Demo, tmp_path: Path) -> None:
    for first, last in ((PERSONS, DESTINATIONS), (CITIES, CITIES), (TOTALS, TOTALS)):
        saved = [load(path) for path in demo.saved[first : last + 1]]
        written = disclose(saved, tmp_path / "entry.yaml", ledger=demo.ledger)
        assert written.filled >= 0.8 * written.fields
        assert (len(written.missing), written.verified) == (5, True)


def test_each_answer_names_its_limit_and_what_is_not_counted(
    pages: list[Answer],
    demo: run.Demo,
    persons: PersonsRelease,
    limit: int,
    limit_of_destinations: int,
) -> None:
    limits = dict.fromkeys(range(DELAYS, DESTINATIONS), limit)
    limits[DESTINATIONS] = limit_of_destinations
    for index, page in enumerate(pages):
        if index == PERSONS:
            assert "All rows that name a tailnum are counted, before any limit" in page.counted
            assert page.accuracy.startswith("Of all rows that name a tailnum, each ")
        elif index not in limits:
            assert "at most" not in page.counted
            assert "Every accuracy is about the rows counted." in page.counted
            assert page.accuracy.startswith("Of the rows counted, each ")
        else:
            assert (
                f"Of each tailnum at most {limits[index]} rows are counted, chosen at random, "
                "and any further ones are not."
            ) in page.counted
            assert "Rows without a tailnum or without a value" in page.counted
            assert "Every accuracy is about the rows counted." in page.counted
            assert persons.sentence(limits[index]) in page.counted
            counted = f"Of the rows counted (at most {limits[index]} a tailnum)"
            assert page.accuracy.startswith(counted)
    assert len(demo.releases) == len(pages) == 10


def test_no_accuracy_on_the_page_is_about_anything_else(text: str) -> None:
    """Every sentence about an accuracy names the rows counted, in pictures as on the page."""
    # A note in a picture has several lines.
    joined = re.sub(r"</text>[^<]*(?:<(?!text|/svg)[^<]*)*<text[^>]*>", " ", text)
    # A point within a number ends no sentence.
    sentences = re.split(r"\.(?!\d)|[<>]", joined)
    claims = [one for one in sentences if re.search("within ±|off by at most|hold within", one)]
    assert len(claims) > 10
    about = "rows counted|all rows that name a tailnum"
    assert [claim for claim in claims if not re.search(about, claim)] == []


def test_the_page_says_how_many_rows_limits_leave_out_as_was_measured(
    pages: list[Answer], text: str, persons: PersonsRelease, delays: pd.DataFrame, limit: int
) -> None:
    """It gives the measured share, and not the true number, which was not paid for."""
    assert [fact for fact in persons.facts if fact not in pages[PERSONS].caption] == []
    of_each = delays.groupby("tailnum").size()
    assert f"{int((of_each - np.minimum(of_each, limit)).sum()):,} rows" not in text
    assert "do not say how many these are, unless that was measured privately" in text


def test_accounts_say_what_they_protect(text: str, demo: run.Demo) -> None:
    spent = text[text.index("What was spent") : text.index("Only answers shown")]
    of_aircraft, of_cities, of_flights = spent.split("<h3>Account ")[1:]
    assert of_aircraft.startswith("aircraft-2013")
    assert "It protects any one tailnum, added or removed, with all its rows." in of_aircraft
    assert "bounded by epsilon = 4, delta = 0.000001." in of_aircraft
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
    release, shown = demo.releases[DELAYS], pages[DELAYS].rows
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
        (DELAYS_BY_CARRIER, carrier, list(CARRIERS)),
        (
            DELAYS_BY_HOUR,
            delays.hour.to_numpy() // 3,
            ["below 3", *hours, "21 and above"],
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
    assert near(release.rows, release.rows_law.half_width(ALPHA / 16), kept, sizes)
    for carrier, row in zip(CARRIERS, pages[MEDIANS].rows, strict=True):
        assert (row[0], row[1]) == (carrier, "0.5")
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
    surely = release.rows - release.rows_law.half_width(0.05)
    assert release.known.reshape(-1).tolist() == (surely / 2 > half_width(method, 0.025)).tolist()


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
    names = [f"{h} to {h + 1}" for h in range(24)]
    names[0] = "below 1"
    names[-1] = "23 and above"
    assert [row[0] for row in shown] == (names if column == "hour" else list(groups))
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
    assert np.allclose(numbers(shown, 3), low, rtol=1e-4)
    assert np.allclose(numbers(shown, 4), high, rtol=1e-4)
    of_known = [row for row in shown if row[-1] == "yes"]
    assert np.allclose(numbers(of_known, 2), release.values[known], rtol=1e-4)
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


def test_cities_are_near_the_truth(demo: run.Demo) -> None:
    release: Any = demo.releases[CITIES]
    table = pq.read_table(cities_path()).select(["longitude", "latitude"])
    points = np.column_stack([table[name].to_numpy() for name in table.column_names])
    true = np.bincount(release.assign(points), minlength=len(release.counts))
    assert near(release.counts, release.accuracy(SURE, simultaneous=True), true, true)


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
    assert pages[TOTALS].title == "Running total of events by origin"


@pytest.mark.parametrize("index", [DELAYS, DELAYS_BY_CARRIER, DELAYS_BY_HOUR, DESTINATIONS])
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
