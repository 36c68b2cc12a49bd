"""What is said of the rows that limits leave out is true of all rows of a table."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import openpyxl
import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.testing import deterministic

EACH = np.sort(np.round(3_000 / np.arange(1, 601)).astype(int) + 1)
"""How many rows each of 600 riders has: one has 3,001, half of them 6 to 11."""
RIDERS = np.repeat(np.arange(EACH.size), EACH)
RIDES = pa.table({"rider": RIDERS, "month": 1 + (np.arange(RIDERS.size) * 7) % 12})
DOMAIN = sf.Domain(month=sf.Interval(1, 13, step=1))
MONTHS = sf.Histogram("month")
LIMIT = 3


def publisher(**limits: int) -> sf.Publisher:
    source = sf.source(RIDES, DOMAIN, person="rider", person_called="rider", name="rides", **limits)
    return sf.Publisher(source, budget="99")


def number(text: str) -> float:
    return float(text.replace(",", ""))


@pytest.mark.parametrize("limit", [LIMIT, 8, 50])
def test_what_is_known_of_a_limit_is_true_of_all_rows(limit: int) -> None:
    with deterministic(5), publisher(rows_per_person=limit) as pub:
        _, months = pub.release([sf.Persons(most_rows=5_000), MONTHS], epsilon="4")
    said = re.fullmatch(
        rf"At most {limit} rows of each rider are counted: ([0-9,]+) to ([0-9,]+) of about "
        r"([0-9,]+) riders have more, and at least ([0-9.]+)% of the rows are kept, each with 95% "
        r"confidence, if nobody has more than 5,000 rows \(entry [0-9]+ of the ledger, .{10}\)\.",
        months.scope,
    )
    assert said is not None, months.scope
    fewest, most, everyone, kept = map(number, said.groups())
    assert fewest <= (limit < EACH).sum() <= most
    assert abs(everyone - EACH.size) < EACH.size / 10
    assert kept <= 100 * np.minimum(EACH, limit).sum() / EACH.sum()


def test_where_nothing_is_known_it_says_that_rows_are_missing(tmp_path: Path) -> None:
    with deterministic(5), publisher(rows_per_person=LIMIT) as pub:
        months = pub.release(MONTHS, epsilon="1")
    _, high = months.interval(simultaneous=True)
    of_all_rows = np.bincount(RIDES["month"].to_numpy(), minlength=13)[1:]
    # No interval holds the total of all rows, so each place with a number must say so.
    assert (high < of_all_rows).all()
    sentence = (
        "At most 3 rows of each rider are counted; further rows are missing, and how many is "
        "not known."
    )
    assert months.scope == sentence
    page = sf.report([months], tmp_path / "r.html").read_text("utf-8")
    front = page[page.index('<section class="front"') : page.index('<main id="answers"')]
    assert sentence in front
    assert page.count('<span class="cut"') == 12
    assert "△: without the limit on each person's rows" in page.replace("&#39;", "'")
    note = " ".join(months.plot().get_legend().get_title().get_text().split())
    assert sentence in note
    keys = [text.get_text() for text in months.plot().get_legend().get_texts()]
    assert "without the limit, the total may be higher" in keys
    sheet = openpyxl.load_workbook(months.to_excel(tmp_path / "m.xlsx")).worksheets[0]
    assert sentence in [cell.value for cell in sheet[1]]


def test_a_norm_is_told_by_the_rows_that_are_kept_whole() -> None:
    source = sf.source(
        RIDES, DOMAIN, person="rider", person_called="rider", norm_per_person=12, name="rides"
    )
    with deterministic(5), sf.Publisher(source, budget=sf.ZCDP("1")) as pub:
        months = pub.release(MONTHS, rho="1")
    assert months.scope.startswith(
        "The counts of each rider are cut to a norm of 12 (whoever has at most 12 rows keeps them "
        "all); further rows are missing"
    )
    # 12 rows in one cell have a norm of 12, and in several cells less.
    few = RIDES.filter(pa.array(EACH[RIDERS] <= 12))
    source = sf.source(few, DOMAIN, person="rider", norm_per_person=12, name="few")
    with deterministic(5), sf.Publisher(source, budget=sf.ZCDP("10000")) as pub:
        counted = pub.release(MONTHS, rho="10000").values
    assert counted.sum() == pytest.approx(few.num_rows, abs=12)


def test_without_a_person_column_all_rows_are_counted_and_each_is_a_person() -> None:
    source = sf.source(RIDES, DOMAIN, name="rides")
    with deterministic(5), sf.Publisher(source, budget="99") as pub:
        months = pub.release(MONTHS, epsilon="1")
        seen = str(pub.preview(MONTHS, epsilon="1"))
    sentence = "One row is one person: someone with 20 rows is 20 persons here."
    assert months.scope == sentence
    assert sentence in months.guarantee.counted
    assert "one row is one person: someone with 20 rows is 20 persons here" in seen
    low, high = months.interval(simultaneous=True)
    of_all_rows = np.bincount(RIDES["month"].to_numpy(), minlength=13)[1:]
    assert ((low <= of_all_rows) & (of_all_rows <= high)).all()


@pytest.mark.parametrize(("cost", "letter"), [({"epsilon": "1"}, "epsilon"), ({"rho": "1"}, "rho")])
def test_a_preview_names_the_question_and_a_price_that_suffices(
    cost: dict[str, str], letter: str
) -> None:
    unit = publisher(rows_per_person=LIMIT).source.unit
    said = " ".join(str(sf.preview(MONTHS, domain=DOMAIN, unit=unit, **cost)).split())
    price = re.search(
        rf"sf\.Persons\(most_rows=\.\.\.\) first \(sfumato persons\): at {letter} = ([0-9.]+) it "
        rf"tells within 3% how many of 1,000 riders lose rows, at {letter} = ([0-9.]+) of 10,000",
        said,
    )
    assert price is not None, said
    persons = sf.Persons(most_rows=1_000)
    for amount, number_of_persons in zip(price.groups(), (1_000, 10_000), strict=True):
        asked = sf.preview(persons, domain=DOMAIN, unit=unit, **{letter: amount})
        assert asked.of_everyone() <= 0.03 * number_of_persons
    # Where the plan asks it itself, nothing is advised.
    assert "to learn how much" not in str(
        sf.preview([MONTHS, persons], domain=DOMAIN, unit=unit, **cost)
    )
