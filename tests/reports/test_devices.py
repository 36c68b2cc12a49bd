"""Clusters of devices' reports as a section of the page."""

import numpy as np
import pytest

import sfumato as sf
from reports.making import Outline, answered
from sfumato.domain.domain import Interval
from sfumato.errors import UsageError
from sfumato.questions.histogram import Histogram
from sfumato.reports import page
from sfumato.reports import sections as devices
from sfumato.testing import deterministic


@pytest.fixture(scope="module")
def model():
    points = np.random.default_rng(3).random((4000, 2)) / 4 + 0.3
    bounds = {"age": Interval(0, 100), "<b>wage": Interval(0, 5000)}
    scaled = points * [100, 5000]
    return sf.PrivateKMeans(2, epsilon=8, random_state=0, bounds=bounds).fit(scaled)


def test_a_page_of_reports_alone_says_what_it_shows(model):
    shown = page.render([model])
    assert "<title>What devices reported</title>" in shown
    assert "Nobody else ever had the true values." in shown
    assert "Nothing was released" not in shown
    assert "4,000</b> reports" in shown
    assert Outline(shown).open == []


def test_each_centre_has_its_intervals_in_the_units_of_the_data(model):
    lines = dict(devices.study(model, "a").sentences)["The centres, from the largest down:"]
    assert len(lines) == 2
    for line in lines:
        assert "% of the persons: age " in line
        assert line.count(", 95%)") == 2
    low, high = model.intervals()
    largest = int(np.argmax(model.weights_))
    first, last = (devices._four_digits(end[largest][0]) for end in (low, high))
    ends = f"({first} to {last}, 95%)"
    assert ends in lines[0]


def test_a_page_for_a_board_leaves_the_proof_out(model):
    board, technical = (page.render([model], audience=one) for one in ("board", "technical"))
    assert "Metric privacy, epsilon = 8" in board
    assert "Holds because" in technical
    assert "Holds because" not in board


def test_hostile_names_are_shown_and_not_obeyed(model):
    assert "&lt;b&gt;wage" in page.render([model])
    assert "<b>wage" not in page.render([model])


def test_reports_from_a_public_seed_are_marked():
    with deterministic(1):
        made = sf.PrivateKMeans(1, epsilon=8, random_state=0).fit(np.full((500, 2), 0.4))
    shown = page.render([made, answered(Histogram("kind"))])
    assert "NOT PRIVATE" in shown
    assert "NOT PRIVATE" in devices.study(made, "a").sentences[0][0]


def test_naive_centres_have_no_intervals():
    points = np.random.default_rng(3).random((500, 2))
    made = sf.PrivateKMeans(2, epsilon=8, random_state=0, method="naive").fit(points)
    lines = dict(devices.study(made, "a").sentences)["The centres, from the largest down:"]
    assert not any("95%" in line for line in lines)


def test_a_model_that_saw_no_reports_is_refused():
    with pytest.raises(UsageError, match="it has seen no reports"):
        page.render([sf.PrivateKMeans(2, epsilon=8)])
