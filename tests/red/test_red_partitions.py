"""Partitions, quantiles and clusters at the ends of their parameters.

Nothing is charged that cannot be answered, nothing false is said.
"""

import warnings

import numpy as np
import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.questions.quantiles.cells import Cells
from sfumato.sklearn import KMeans


def publisher(rows, domain, budget=10**9):
    return sf.Publisher(sf.source(rows, domain, name="red"), budget=sf.PureDP(budget))


def test_a_tree_of_two_heavy_points_in_many_dimensions_is_counted():
    """Its paths are longer than there are slices of the cost."""
    d = 12
    rows = np.repeat(np.random.default_rng(d).random((2, d)), 20_000, axis=0)
    pub = publisher(rows, sf.Domain({f"x{i}": sf.Interval(0, 1) for i in range(d)}))
    tree = pub.release(sf.PrivTreePartitioner(), epsilon=1)
    assert tree.depth.max() > 4 * 24
    assert np.isfinite(tree.scale).all()


@pytest.mark.parametrize("epsilon", ["0.000000001", "0.00000002", "0.00000005", "0.00000006"])
def test_an_adaptive_grid_is_refused_before_the_charge_or_answered(epsilon):
    pub = publisher(np.zeros((5, 2)), sf.Domain(x=sf.Interval(0, 1), y=sf.Interval(0, 1)), budget=1)
    try:
        pub.release(sf.AdaptiveGridPartitioner(), epsilon=epsilon)
    except sf.UsageError:
        assert pub.remaining == 1


def test_parameters_that_no_double_holds():
    for make in (
        lambda: sf.UniformPartitioner(theta="1e-400"),
        lambda: sf.UniformPartitioner(theta="1e-300"),
        lambda: sf.BinaryPartitioner(stop_below="1e999"),
    ):
        with pytest.raises(sf.UsageError):
            make()


@pytest.mark.parametrize(
    "question", [sf.BinaryPartitioner(depth=4), sf.AdaptiveGridPartitioner(), sf.AutoPartitioner()]
)
@pytest.mark.parametrize("rows", [np.zeros((0, 1)), np.full((40, 1), 0.3)])
def test_noise_that_is_never_there_leaves_numbers(question, rows):
    """At epsilon 10^5 the variance of the noise is no double above 0."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = publisher(rows, sf.Domain(x=sf.Interval(0, 1, step=0.125))).release(
            question, epsilon=10**5
        )
        assert found.consistent().counts.sum() == pytest.approx(len(rows))
        assert found.count(x=(0.25, 0.375)).value == pytest.approx(len(rows))
        assert np.isfinite(found.consistent().accuracy()).all()


def test_quantiles_by_label_send_what_is_missing_or_not_listed_to_its_own_label():
    domain = sf.Domain(
        x=sf.Interval(0, 100, step=1), k=sf.Categories(["a"], other="else", missing="gone")
    )
    near = {"a": 10, "b": 50, None: 90}
    rows = pa.table(
        {
            "x": [at + i % 5 for at in near.values() for i in range(3000)],
            "k": [k for k in near for _ in range(3000)],
        }
    )
    found = publisher(rows, domain).release(sf.Quantiles("x", at=[0.5], by="k"), epsilon=100)
    assert found.labels == ("a", "else", "gone")
    assert np.abs(found.values.reshape(-1) - [12, 52, 92]).max() <= 2


def test_cuts_by_jointexp_state_their_slack():
    pub = publisher(np.random.default_rng(0).random((100, 1)), sf.Domain(x=sf.Interval(0, 1)))
    assert "charged" in pub.release(sf.MultiQuantilePartitioner(depth=1), epsilon=1).guarantee.slack
    assert pub.release(sf.MultiQuantilePartitioner(depth=0), epsilon=1).guarantee.slack.startswith(
        "none"
    )
    assert pub.release(sf.MedianPartitioner(depth=1), epsilon=1).guarantee.slack.startswith("none")


def test_no_number_of_rows_in_an_error_and_no_count_in_a_repr():
    with pytest.raises(sf.UsageError) as refused:
        KMeans(2, epsilon=1, bounds=(0, 1)).fit(np.zeros(48_611))
    assert "48611" not in str(refused.value)
    assert "48611" not in repr(Cells(np.array([3]), np.array([48_611]), 10))
