"""A page shows a family table by table, with sums on the edges and what is not known marked."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

import sfumato as sf
from reports.making import Outline
from sfumato.answers.estimate import half_width_text
from sfumato.reports import front, page, sections
from sfumato.reports import sections as families

DOMAIN = sf.Domain(
    kind=sf.Categories(["a", "b", "c"]),
    age=sf.Interval(0, 100),
    sex=sf.Categories(["f", "m"]),
)


def released(tables, domain=DOMAIN, bins=5, **words):
    rng = np.random.default_rng(1)
    n = 3000
    columns = {
        "kind": np.array(["a", "b", "c"])[rng.integers(0, 3, n)],
        "age": rng.beta(2, 4, n) * 100,
        "sex": np.array(["f", "m"])[rng.integers(0, 2, n)],
    }
    source = sf.source(pa.table(columns), domain, name="people")
    publisher = sf.Publisher(source, budget=sf.ZCDP("1"))
    with sf.testing.deterministic(7):
        return publisher.release(sf.Tables(tables, bins=bins, **words), rho="0.1")


@pytest.fixture(scope="module")
def release():
    return released([["kind", "age"], ["kind", "sex"], ["age", "sex", "kind"]])


def test_each_table_is_shown_with_its_sums(release):
    first, second, *slices = families.family_tables(release.for_people())
    assert first.title == "Number of rows by kind and age"
    assert first.sheet.columns == ("age / kind", "a", "b", "c", "all")
    assert [row[0].text for row in first.sheet.rows][-1] == "all"
    assert first.sheet.has_margins
    assert first.sheet.has_last_sums
    whole = release["age", "kind"].published()
    shown = [[field.text for field in row[1:-1]] for row in first.sheet.rows[:-1]]
    assert shown == [[f"{count:,}" for count in row] for row in whole.tolist()]
    assert first.sheet.rows[-1][-1].text == f"{whole.sum():,}"
    assert second.sheet.rows[-1][-1].text == first.sheet.rows[-1][-1].text
    assert [one.title for one in slices] == [
        f"Number of rows by age and kind, {which}" for which in ("every sex", "sex f", "sex m")
    ]


def test_widths_stand_above_the_table_once(release):
    first = families.family_tables(release.for_people())[0]
    half = release["age", "kind"].accuracy()[0, 0]
    assert first.reading.startswith("Rounded to whole numbers of at least 0 that add up. Of the")
    assert f"before rounding, each count is within ±{half_width_text(half)}," in first.reading
    assert "each sum of a row within ±" in first.reading
    assert not any(field.interval for row in first.sheet.rows for field in row)


def test_estimates_are_there_beside_the_whole_numbers(release):
    first = families.family_tables(release.for_people())[0]
    estimate = release["age", "kind"].values[0, 0]
    assert first.estimates.rows[0][1].text == f"{estimate:,.1f}"


def test_what_may_be_0_is_hatched(release):
    few = released([["kind", "age"], ["kind", "sex"]], bins=25)
    first = families.family_tables(few.for_people())[0]
    low, _ = few["age", "kind"].interval()
    hatched = [[field.hatched for field in row[1:-1]] for row in first.sheet.rows[:-1]]
    assert np.array_equal(hatched, low <= 0)
    assert "A hatched count may be 0." in first.reading


def test_a_broad_table_lies_on_its_side_and_a_broader_one_is_listed():
    wide = sf.Domain(
        kind=sf.Categories([f"k{i}" for i in range(20)]),
        age=sf.Interval(0, 100),
        sex=sf.Categories(["f", "m"]),
    )
    first, second = families.family_tables(
        released([["kind", "age"], ["kind", "sex"]], wide, bins=20).for_people()
    )
    assert first.is_broad
    assert not second.is_broad
    labels = sf.Categories([f"k{i}" for i in range(31)])
    broader = sf.Domain(kind=labels, age=DOMAIN["age"])
    listed = families.family_tables(released([["kind", "age"]], broader, bins=31).for_people())
    assert listed[0].sheet.columns[:2] == ("kind", "age")
    assert listed[0].cut == "The first 200 of 961 rows."


def test_many_tables_of_three_axes_are_folded():
    domain = sf.Domain(
        kind=sf.Categories([f"k{i}" for i in range(9)]), age=DOMAIN["age"], sex=DOMAIN["sex"]
    )
    release = released([["kind", "age", "sex"]], domain, bins=9)
    assert not any(one.folded for one in families.family_tables(release))
    three = sf.Domain(
        **{name: sf.Categories([str(i) for i in range(7)]) for name in ("kind", "sex")},
        age=DOMAIN["age"],
    )
    first, *rest = families.family_tables(released([["kind", "age", "sex"]], three, bins=7))
    assert not first.folded
    assert len(rest) == 7
    assert all(one.folded for one in rest)


def test_the_page_is_whole_and_its_front_says_that_they_add_up(release):
    text = page.render([release])
    outline = Outline(text)
    assert outline.open == []
    assert "3 tables add up: any two agree in all totals that they share." in text
    assert 'class="of-family' in text
    assert "page: lying" in text
    published, accurate, _ = front.blocks([release], [])
    assert [bar.label for bar in published.bars] == list(release.members)
    assert [bar.label for bar in accurate.bars] == list(release.members)
    board = page.render([release], audience="board")
    assert "The estimates, before" in text
    assert "The estimates, before" not in board


def test_names_for_people_head_the_tables():
    words = {"label_names": {"a": "Apples <b>"}, "heading": "Fruit", "measured_in": {"age": "days"}}
    release = released([["kind", "age"], ["kind", "sex"]], **words)
    (section,) = sections.of_answers([release], ["one"])
    assert section.title == "Fruit"
    assert section.table is None
    assert section.family[0].sheet.columns[1] == "Apples <b>"
    assert "days" in section.family[0].sheet.columns[0]
    text = page.render([release])
    assert "Apples &lt;b&gt;" in text
    assert "Apples <b>" not in text


def test_the_sentence_on_accuracy_is_one(release):
    (section,) = sections.of_answers([release], ["one"])
    assert section.accuracy.count("95%") == 1
    assert "before rounding" in section.accuracy
