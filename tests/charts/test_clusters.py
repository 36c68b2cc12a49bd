"""Pictures of clusters: numbered by weight, with borders, at every number of axes."""

import numpy as np
import pytest

from sfumato.audit.runs import count
from sfumato.charts import clusters, style
from sfumato.domain.lattice import GridAxis, Lattice
from sfumato.privacy.measures import PureDP
from sfumato.privacy.unit import Unit
from sfumato.questions.clustering import KMeans
from sfumato.random import PublicSeed


def made(d, k=3, method="dplloyd", time=None, n=2000):
    lattice = Lattice(
        tuple(GridAxis(f"axis {i}", 0.0, 64.0, 64, time if i == 0 else None) for i in range(d))
    )
    rng = np.random.default_rng(1)
    rows = rng.choice([8.0, 30.0, 56.0], (n, 1), p=[0.2, 0.5, 0.3]) + rng.normal(size=(n, d))
    return KMeans(k, method=method).answer(
        count(tuple(map(tuple, rows.tolist())), lattice), Unit(), PureDP(2), PublicSeed(1)
    )


@pytest.mark.parametrize("width", [style.WIDE, style.NARROW])
@pytest.mark.parametrize(
    ("d", "method"),
    [
        (1, "dplloyd"),
        (2, "dplloyd"),
        (2, "eugkm"),
        (2, "privtree"),
        (3, "dplloyd"),
        (12, "dplloyd"),
    ],
)
def test_every_number_of_axes_is_drawn(d, method, width):
    with style.sized(width):
        text = style.svg(made(d, method=method).plot().figure, "t", "d")
    assert "axis 0" in text
    assert len(text) < 400_000


def test_clusters_are_numbered_from_the_largest_down():
    release = made(2)
    ax = clusters.draw(release)
    places = {text.get_text(): text.xy for text in ax.texts}
    heaviest = int(np.argmax(release.weights))
    assert places["1"] == pytest.approx(tuple(release.centers[heaviest]))
    assert sorted(places) == ["1", "2", "3"]
    assert "standard error" in ax.get_legend().get_title().get_text()


def test_one_cluster_has_no_border():
    assert clusters.draw(made(2, k=1)).collections


def test_dates_and_weights_that_cannot_be_told_from_nothing():
    release = made(2, k=9, time="day", n=12)
    assert "1970" in style.svg(release.plot().figure, "t", "d")
    assert "d" in style.svg(made(3, k=9, time="day", n=12).plot().figure, "t", "d")
