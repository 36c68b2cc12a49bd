"""How many aircraft there are, which limits follow from that, and what the page says of them."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from demo.reading import (
    BY_MONTH,
    CITIES,
    CLUSTERS,
    LATE,
    MEANS,
    NORMS,
    PERSONS,
    QUANTILES,
    SURE,
    TABLES,
    TOTALS,
    Answer,
    covers,
    near,
    numbers,
)
from sfumato import cli
from sfumato.answers.loading import load
from sfumato.demo import run
from sfumato.demo.run import MOST_FLIGHTS
from sfumato.ledger import open_ledger
from sfumato.questions.histogram import Histogram
from sfumato.questions.persons import PersonsRelease, recommend
from sfumato.reports.disclosure import disclose

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
    assert of_each.max() <= MOST_FLIGHTS


def pairwise_ends(ends: np.ndarray) -> list[tuple[int, int]]:
    """The first and last number of each bin, from the last ones."""
    return list(zip([1, *(ends[:-1] + 1)], ends, strict=True))


def test_what_each_limit_leaves_out_is_near_the_truth(
    persons: PersonsRelease, norms: PersonsRelease, held: pd.DataFrame, of_each: np.ndarray
) -> None:
    for limit in persons.limits.tolist():
        assert covers(persons.affected(limit, SURE), (of_each > limit).sum())
        kept = np.minimum(of_each, limit).sum() / of_each.sum()
        assert covers(persons.kept(limit, SURE), kept)
    of_months = held.groupby(["tailnum", "month"], observed=True).size()
    squares = (of_months**2).groupby("tailnum", observed=True).sum().to_numpy()
    for limit in norms.limits.tolist():
        assert covers(norms.affected(limit, SURE), (squares > limit**2).sum())


def test_limits_follow_from_the_first_answers(demo: run.Demo, limit: int, norm: int) -> None:
    """They need nothing but what was published: the files that were saved give the same."""
    persons, norms = load(demo.saved[PERSONS]), load(demo.saved[NORMS])
    assert isinstance(persons, PersonsRelease)
    assert isinstance(norms, PersonsRelease)
    delays = Histogram("dep_delay", bins=30)
    assert recommend(persons, delays, rho=run.RHO_OF_QUANTILES).limit == limit
    assert run.norm_of_aircraft(persons, norms) == norm


def test_the_limits_are_of_use(of_each: np.ndarray, limit: int, norm: int) -> None:
    """Noise in the first answers moves them little: about 300, and about 120."""
    assert np.minimum(of_each, limit).sum() / of_each.sum() > 0.9
    assert 70 <= norm <= 250


def test_a_second_run_finds_the_ledger_and_pays_nothing(
    demo: run.Demo, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Nor does it ask a device again. This one is asked for on the command line."""
    with open_ledger(demo.ledger) as ledger:
        before = ledger.verify()
    saved = {path: path.read_bytes() for path in demo.saved}
    runs = []
    plain = run.publish
    monkeypatch.setattr(run, "publish", lambda *given: runs.append(plain(*given)) or runs[-1])
    # The page of the same answers is the same, which the reports' own tests show.
    monkeypatch.setattr(run, "report", lambda shown, path, **_: path)
    assert cli.run(["demo", "--out", str(demo.report.parent)]) == 0
    assert capsys.readouterr().out == f"Report: {demo.report.resolve()}\n"

    (again,) = runs
    assert saved == {path: path.read_bytes() for path in again.saved}
    assert again.devices.fits_ == 0
    assert np.array_equal(again.devices.reports_, demo.devices.reports_)
    assert all(release.replayed for at, release in enumerate(again.releases) if at != TOTALS)
    assert again.releases == demo.releases
    assert [release.receipt for release in again.releases] == [
        release.receipt for release in demo.releases
    ]
    with open_ledger(demo.ledger) as ledger:
        assert ledger.verify() == before


# --- which rows are counted ---


def test_most_of_a_disclosure_is_filled_in(demo: run.Demo, tmp_path: Path) -> None:
    for answers in ((BY_MONTH, LATE, TABLES, PERSONS), (CITIES, CLUSTERS), (TOTALS,)):
        saved = [load(demo.saved[answer]) for answer in answers]
        written = disclose(saved, tmp_path / "entry.yaml", ledger=demo.ledger)
        assert written.filled >= 0.8 * written.fields
        assert (len(written.missing), written.verified) == (5, True)


def test_each_answer_names_its_limit_and_what_is_not_counted(
    pages: list[Answer],
    demo: run.Demo,
    persons: PersonsRelease,
    norms: PersonsRelease,
    limit: int,
    norm: int,
) -> None:
    limits = dict.fromkeys([BY_MONTH, LATE, MEANS, TABLES], f"cut to a norm of {norm}")
    limits[QUANTILES] = f"t most {limit}"
    for index, page in enumerate(pages):
        if index in (PERSONS, NORMS):
            assert "All rows that name an aircraft" in page.counted
            assert "are counted, before any limit" in page.counted
            assert page.accuracy.startswith("Of all rows that name an aircraft, each ")
        elif index not in limits:
            assert "at most" not in page.counted
            # A stream says which events it counts.
            one = "Rows outside the calendar" if index == TOTALS else "One row is one person: "
            assert one in page.counted
            assert page.accuracy.startswith("Of the rows counted, each ")
        else:
            assert limits[index] in page.counted
            assert "Which ones are counted is chosen at random." in page.counted
            assert "Rows without an aircraft or without a value" in page.counted
            assert page.accuracy.startswith("Of the rows counted (")
            assert limits[index] in page.accuracy
    assert persons.sentence(limit).rstrip(".") in pages[QUANTILES].counted
    assert norms.sentence(norm).rstrip(".") in pages[BY_MONTH].counted
    assert len(demo.releases) == len(pages) == 11


def test_no_accuracy_on_the_page_is_about_anything_else(text: str) -> None:
    """Every sentence about an accuracy names the rows counted, in pictures as on the page."""
    # A note in a picture has several lines.
    joined = re.sub(r"</text>[^<]*(?:<(?!text|/svg)[^<]*)*<text[^>]*>", " ", text)
    # A point within a number ends no sentence.
    sentences = re.split(r"\.(?!\d)|[<>]", joined)
    claims = [one for one in sentences if re.search("within ±|off by at most|hold within", one)]
    assert len(claims) > 10
    # What a window requests is no accuracy of an answer; it says before what it is about.
    about = r"rows counted|all rows that name an aircraft|for rho = [.\d]+(?: each)?$"
    assert [claim for claim in claims if not re.search(about, claim)] == []


def test_the_page_says_how_many_rows_limits_leave_out_as_was_measured(
    pages: list[Answer], text: str, persons: PersonsRelease, of_each: np.ndarray, limit: int
) -> None:
    """It gives the measured share, and not the true number, which was not paid for."""
    assert [fact for fact in persons.facts if fact not in pages[PERSONS].caption] == []
    assert f"{int((of_each - np.minimum(of_each, limit)).sum()):,} rows" not in text
    assert "do not say how many these are, unless that was measured privately" in text


def test_accounts_say_what_they_protect(text: str, demo: run.Demo) -> None:
    spent = text[text.index("What was spent") : text.index("Only answers shown")]
    of_aircraft, of_cities, of_flights = spent.split("<h3>Account ")[1:]
    assert of_aircraft.startswith("aircraft-of-2013")
    assert "It protects any one aircraft, added or removed, with all their rows." in of_aircraft
    assert "bounded by rho = 0.0" in of_aircraft
    assert of_flights.startswith("each-flight-of-2013")
    assert (
        "It protects any single row, added or removed. "
        "One row is one person: someone with 20 rows is 20 persons here." in of_flights
    )
    assert "any single row" in of_cities
    units = {
        release.receipt.account: release.guarantee.unit.person
        for release in demo.releases
        if release.receipt is not None
    }
    assert units == {"aircraft-of-2013": "tailnum", "cities": None, "each-flight-of-2013": None}


# --- the numbers ---
