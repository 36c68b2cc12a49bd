"""The maps and clusters of the demo, and what it says of epsilon, are true."""

from __future__ import annotations

import html
import re
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

from demo.reading import BY_MONTH, CITIES, CLUSTERS, LATE, SURE, Answer, near
from sfumato.demo import DISTANCES, cities_path, run
from sfumato.demo import run as cities
from sfumato.risk import Choices
from sfumato.risk.window import Window


@pytest.fixture(scope="module")
def points() -> np.ndarray:
    table = pq.read_table(cities_path()).select(["longitude", "latitude"])
    return np.column_stack([table[name].to_numpy() for name in table.column_names])


def test_cities_are_near_the_truth(demo: run.Demo, points: np.ndarray) -> None:
    release: Any = demo.releases[CITIES]
    true = np.bincount(release.assign(points), minlength=len(release.counts))
    assert near(release.counts, release.accuracy(SURE, simultaneous=True), true, true)


def test_the_map_has_coasts_and_can_be_enlarged(demo: run.Demo) -> None:
    text = demo.report.read_text("utf-8")
    # One on the first page, and two beside the answer: for a page, and for a phone.
    extents = re.findall(r'<g class="map" data-extent="(.*?)">', text)
    assert extents == ["-180 180 -90 90"] * 3
    # Those, and two pictures of the clusters.
    assert text.count('<g class="coast">') == 5
    assert text.count("<script>") == 1


def test_clusters_are_near_those_of_the_truth(
    demo: run.Demo, pages: list[Answer], points: np.ndarray
) -> None:
    """Each weight is that of the points nearest to its centre, give or take its noise."""
    release: Any = demo.releases[CLUSTERS]
    assert pages[CLUSTERS].title == "Clusters of cities"
    true = np.bincount(release.predict(points), minlength=cities.CLUSTERS)
    half = release.accuracy(SURE, simultaneous=True)
    # The cells along the borders between groups are divided as their middles are.
    assert near(release.weights, half + 0.02 * len(points), true, true)


def test_devices_find_the_clusters_that_a_curator_finds(demo: run.Demo, points: np.ndarray) -> None:
    trusted: Any = demo.releases[CLUSTERS]
    found = demo.devices
    assert len(found.reports_) == -(-len(points) // cities.EVERY_TENTH)
    assert found.guarantee_.private
    scaled = [
        centres / np.array([360, 180]) for centres in (found.cluster_centers_, trusted.centers)
    ]
    apart = np.linalg.norm(scaled[0][:, None] - scaled[1][None], axis=2)
    assert apart.min(axis=0).max() < 0.1


def test_the_page_shows_every_job(demo: run.Demo, text: str) -> None:
    for heading in (
        "Flights of each aircraft",
        "Norm of the monthly flights of each aircraft",
        "Flights by month",
        "Late flights by time of day",
        "Mean delay by time of day",
        "Quantiles of the delay",
        "Flights in tables that add up",
        "Flights by destination",
        "Where the cities are",
        "Clusters of cities",
        "Clusters without a trusted curator",
        "Flights so far, by airport",
        "Which rho? Flights by month",
        "Epsilon for a disclosure risk: mean",
    ):
        assert heading in html.unescape(text)
    assert all(release.heading != release.title for release in demo.releases)


def test_the_window_is_that_of_the_flights_that_were_published(demo: run.Demo) -> None:
    window = demo.decisions[0]
    assert isinstance(window, Window)
    assert window.feasible
    for index in (BY_MONTH, LATE):
        release: Any = demo.releases[index]
        # The cost is the least at which each count is within the error that was asked for.
        error = release.accuracy("0.95", simultaneous=True).max()
        assert 0.9 * run.ERROR_OF_A_MONTH <= error <= run.ERROR_OF_A_MONTH


def test_lee_and_clifton_keep_the_risk_within_a_third(demo: run.Demo) -> None:
    choices = demo.decisions[1]
    assert isinstance(choices, Choices)
    (choice,) = choices.values()
    assert len(DISTANCES) == 10
    assert 1 < choice.epsilon < 5


def test_the_folder_holds_what_it_says(demo: run.Demo) -> None:
    assert [path.name for path in demo.saved] == [f"{i}.json" for i in range(1, 12)]
    assert Path(demo.report).stat().st_size < 1_500_000
