"""The front page says what follows from the releases, in few lines."""

import dataclasses

import msgspec
import numpy as np
import pyarrow as pa
import pytest

import sfumato as sf
from reports.making import Outline, answered, receipted
from sfumato.charts import style
from sfumato.domain.domain import Domain, Interval
from sfumato.privacy import belief
from sfumato.privacy.measures import ApproxDP, PureDP
from sfumato.privacy.unit import Unit
from sfumato.questions.histogram import Histogram
from sfumato.questions.partition.uniform import UniformPartitioner
from sfumato.reports import front, page
from sfumato.reports import front as spending
from sfumato.reports.front import MOST_BARS, glances
from sfumato.reports.headings import heading_of


def blocks(*releases):
    return front.blocks(releases, spending.accounts(releases))


def test_what_was_published():
    release = receipted(answered(Histogram("age", bins=50)))
    published, _, _ = blocks(release)
    low, _ = release.interval()
    seen = int((low > 0).sum())
    assert 0 < seen < 50
    assert published.lines[0] == "1 answer about trips.parquet."
    assert published.lines[1].startswith(f"{seen} of 50 numbers stand out from the noise; ")
    (bar,) = published.bars
    assert (bar.share, bar.text) == (seen / 50, f"{seen} of 50")
    assert bar.label == "Number of rows by age"
    assert published.hatches


def test_a_probability_that_is_not_delta_is_explained():
    releases = [receipted(answered(Histogram("age")))]
    (pure,) = spending.accounts(releases)
    promise = ApproxDP("1", "1e-6")
    meaning = belief.sentence(promise, Unit())
    loose = dataclasses.replace(pure, meaning=meaning, together=str(promise))
    assert "0.00001" in meaning
    said = "ten times delta"
    assert any(said in note for note in front.blocks(releases, [loose])[2].notes)
    assert not any(said in note for note in front.blocks(releases, [pure])[2].notes)


def test_how_accurate_it_is():
    release = answered(Histogram("age", bins=5))
    _, accurate, _ = blocks(release)
    half = int(release.accuracy()[0])
    (bar,) = accurate.bars
    assert bar.text == f"±{half}"
    assert bar.share == pytest.approx(half / np.abs(release.values).max())


def test_what_one_person_risks_is_what_the_charges_add_up_to():
    one = receipted(answered(Histogram("age"), PureDP("0.5")))
    two = receipted(answered(Histogram("kind"), PureDP("0.5")), entry=2)
    _, _, risk = blocks(one, two)
    (bar,) = risk.bars
    assert bar.share == pytest.approx(belief.after(0.01, 1))
    said = "Whoever is 1% sure that a person is in the data can become at most 2.68% sure."
    assert risk.lines == (said,)
    cost = "Its answers on this page cost epsilon = 1; others that it paid for add to that."
    assert risk.notes[1] == cost
    other = receipted(answered(Histogram("kind"), PureDP("2")), entry=3, account="other")
    _, _, risk = blocks(one, two, other)
    assert [bar.label for bar in risk.bars] == ["other", "trips"]
    assert len(risk.lines) == 1
    assert risk.notes[0].startswith("Account other protects")
    assert risk.notes[-1] == "What several accounts spend on the same people adds up."


def test_costs_that_do_not_add_up_and_answers_without_receipt_are_told():
    release = receipted(answered(Histogram("age")))
    guarantee = msgspec.structs.replace(release.guarantee, unit=Unit(3))
    other = msgspec.structs.replace(
        receipted(answered(Histogram("kind")), entry=2), guarantee=guarantee
    )
    _, _, risk = blocks(release, other)
    assert not risk.bars
    assert risk.lines == (
        "The costs of some answers do not add up to one bound: see what was spent.",
    )
    _, _, risk = blocks(answered(Histogram("age")))
    assert risk.lines == ("No ledger confirms what answers without a receipt cost.",)


def test_nothing_is_said_to_be_bounded_under_a_public_seed():
    _, _, risk = blocks(answered(Histogram("age"), private=False))
    assert risk.lines[0].startswith("Not bounded")
    assert not risk.bars


def test_boxes_of_maps_are_no_numbers_that_are_lost():
    domain = Domain(lon=Interval(-10, 30), lat=Interval(35, 60))
    map_of_rows = answered(UniformPartitioner(["lon", "lat"], partitions=400), domain=domain)
    along = answered(UniformPartitioner("age", partitions=9))
    published, _, _ = blocks(answered(Histogram("age", bins=2)), map_of_rows, along)
    known = next(line for line in published.lines if " stand out" in line)
    assert "2 numbers" in known
    boxes = f"{np.size(map_of_rows.values):,}"
    drawn = f"The map has {boxes} boxes; where noise wins, neighbours are drawn together."
    assert drawn in published.lines
    assert f"The partition of age has {np.size(along.values)} boxes." in published.lines
    assert [bar.text for bar in published.bars] == ["2 of 2"]


DAYS = pa.table({"day": pa.array(np.arange(365), pa.int32()).cast(pa.date32()), "x": [1.0] * 365})


@pytest.mark.parametrize("question", [sf.Histogram("month"), sf.Mean("x", by="month")])
def test_the_first_trend_and_the_first_map_are_drawn_small_with_their_numbers(question):
    domain = sf.Domain(month=sf.Month("day"), x=sf.Interval(0, 2))
    with sf.Publisher(sf.source(DAYS, domain, name="days"), budget=100) as publisher:
        trend = publisher.release(question, epsilon=50)
    plane = Domain(lon=Interval(-10, 30), lat=Interval(35, 60))
    map_of_rows = answered(UniformPartitioner(["lon", "lat"], partitions=400), domain=plane)
    shown = glances([answered(Histogram("kind")), trend, map_of_rows, trend])
    assert [glance.title for glance in shown] == [heading_of(trend), heading_of(map_of_rows)]
    largest, latest, sure = shown[0].said
    values = np.asarray(trend.values)
    _, high = trend.interval(simultaneous=True)
    top = int(values.argmax())
    month = trend.lattice.axes[0].cell_names()[top]
    assert largest.startswith("Largest: ")
    assert largest.endswith(f"({month}).")
    if question == sf.Histogram("month"):
        assert f"{values[top]} ± {high[top] - values[top]} " in largest
    assert latest.endswith("(December).")
    assert "95%" in sure
    total = map_of_rows.count()
    assert shown[1].said[0].startswith(f"In all: {style.number(round(total.value))} ± ")
    text = page.render([trend, map_of_rows])
    assert text.count('class="glances"') == 1
    assert Outline(text).open == []
    assert glances([answered(Histogram("kind"))]) == ()


def test_bars_are_few_and_the_rest_is_counted():
    releases = [answered(Histogram("age", bins=n)) for n in range(2, 12)]
    published, accurate, _ = blocks(*releases)
    for block in (published, accurate):
        assert len(block.bars) == MOST_BARS
        assert block.further == 10 - MOST_BARS
        assert block.further_narrow == 10 - front.MOST_ON_PHONE
    assert f"and {10 - MOST_BARS} more" in page.render(releases)


def test_there_is_no_front_page_without_answers(decisions):
    assert blocks() == ()
    assert 'class="front"' not in page.render(decisions)
