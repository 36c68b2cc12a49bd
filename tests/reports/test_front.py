"""The front page says what follows from the releases, in few lines."""

import dataclasses

import msgspec
import numpy as np
import pytest

from reports.making import answered, receipted
from sfumato.privacy import belief
from sfumato.privacy.measures import ApproxDP, PureDP
from sfumato.privacy.unit import Unit
from sfumato.questions.histogram import Histogram
from sfumato.reports import front, page
from sfumato.reports import front as spending
from sfumato.reports.front import MOST_BARS


def blocks(*releases):
    return front.blocks(releases, spending.accounts(releases))


def test_what_was_published():
    release = receipted(answered(Histogram("age", bins=50)))
    published, _, _ = blocks(release)
    low, _ = release.interval()
    seen = int((low > 0).sum())
    assert 0 < seen < 50
    assert published.lines[0] == "1 answer with 50 numbers about trips.parquet."
    assert f"{50 - seen} of them" in published.lines[1]
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
    assert any(said in line for line in front.blocks(releases, [loose])[2].lines)
    assert not any(said in line for line in front.blocks(releases, [pure])[2].lines)


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
    assert "can become at most 2.68% sure. That is epsilon = 1." in risk.lines[1]
    assert risk.lines[2].startswith("This counts the answers on this page alone")
    other = receipted(answered(Histogram("kind"), PureDP("2")), entry=3, account="other")
    _, _, risk = blocks(one, two, other)
    assert [bar.label for bar in risk.bars] == ["other", "trips"]
    assert risk.lines[0].startswith("Account other protects")
    assert risk.lines[-1] == "What several accounts spend on the same people adds up."


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
