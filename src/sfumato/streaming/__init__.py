"""Running totals under continual observation: noise that is correlated over time, and its cost.

* ``accounting``: sensitivities of streams, and the privacy loss of trees
* ``aggregator``: what all aggregators offer; ``tree``: trees; ``factorised``: by a matrix;
  ``toeplitz``: the matrices
* ``generators``: noise; ``values``: values of nodes, and the past of a stream
* ``queries``: sums of records over time, and restarts; ``ranges``: sums over ranges
"""

from typing import NoReturn

from sfumato.errors import NameUnknown
from sfumato.streaming.accounting import (
    compute_rdp_single_tree,
    compute_rdp_tree_restart,
    compute_zcdp_single_tree,
    compute_zcdp_tree_restart,
    get_privacy_spent,
    squared_sensitivity,
    squared_tree_sensitivity,
)
from sfumato.streaming.aggregator import Aggregator, plot_errors
from sfumato.streaming.factorised import BLTAggregator, StreamState, ToeplitzAggregator
from sfumato.streaming.generators import (
    GaussianNoiseGenerator,
    NoiseState,
    Spec,
    StatelessValueGenerator,
    ValueGenerator,
)
from sfumato.streaming.queries import (
    CumulativeSumQuery,
    GaussianSumQuery,
    PeriodicRoundRestartIndicator,
    PeriodicTimeRestartIndicator,
    ResidualSumQuery,
    RestartIndicator,
    RestartQuery,
    TreeCumulativeSumQuery,
    TreeResidualSumQuery,
    clip_l2,
)
from sfumato.streaming.ranges import NoisyTree, TreeRangeSumQuery, build_tree_from_leaf
from sfumato.streaming.toeplitz import BLT, coefficients, decoder, dyadic_coefficients
from sfumato.streaming.tree import EfficientTreeAggregator, TreeAggregator, TreeState, get_step_idx

__all__ = [
    "Aggregator",
    "BLT",
    "BLTAggregator",
    "CumulativeSumQuery",
    "EfficientTreeAggregator",
    "GaussianNoiseGenerator",
    "GaussianSumQuery",
    "NoiseState",
    "NoisyTree",
    "PeriodicRoundRestartIndicator",
    "PeriodicTimeRestartIndicator",
    "ResidualSumQuery",
    "RestartIndicator",
    "RestartQuery",
    "Spec",
    "StatelessValueGenerator",
    "StreamState",
    "ToeplitzAggregator",
    "TreeAggregator",
    "TreeCumulativeSumQuery",
    "TreeRangeSumQuery",
    "TreeResidualSumQuery",
    "TreeState",
    "ValueGenerator",
    "build_tree_from_leaf",
    "clip_l2",
    "coefficients",
    "compute_rdp_single_tree",
    "compute_rdp_tree_restart",
    "compute_zcdp_single_tree",
    "compute_zcdp_tree_restart",
    "decoder",
    "dyadic_coefficients",
    "get_privacy_spent",
    "get_step_idx",
    "plot_errors",
    "squared_sensitivity",
    "squared_tree_sensitivity",
]

_DEVICES = "noise that each device adds needs secure aggregation, which is not here"
_CENTRAL = "Take TreeRangeSumQuery.build_central_gaussian_query"
_NOT_HERE = {
    "QAdaClipTreeResSumQuery": (
        "its clipping norm follows the records by a private quantile, whose cost its event omits",
        "Pay for a norm with sf.Quantiles, and call reset_l2_clip_gaussian_noise",
    ),
    "CentralTreeSumQuery": ("it is an older name", _CENTRAL),
    "DistributedTreeSumQuery": (_DEVICES, _CENTRAL),
    "DistributedDiscreteGaussianSumQuery": (_DEVICES, _CENTRAL),
    "DistributedSkellamSumQuery": (_DEVICES, _CENTRAL),
    "build_tree": ("it is the name in the source's introduction", "Call build_tree_from_leaf"),
}
"""Names of TensorFlow Privacy's tree aggregation that are refused: why, and what to do."""


def __getattr__(name: str) -> NoReturn:
    """Say why a name of the source is not here."""
    if name in _NOT_HERE:
        raise NameUnknown(f"sfumato.streaming.{name}", *_NOT_HERE[name])
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
