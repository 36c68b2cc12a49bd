"""Running totals under continual observation: noise that is correlated over time, and its cost."""

from sfumato.streaming.accounting import (
    compute_rdp_single_tree,
    compute_rdp_tree_restart,
    compute_zcdp_single_tree,
    compute_zcdp_tree_restart,
    get_privacy_spent,
)
from sfumato.streaming.aggregator import Aggregator, plot_errors
from sfumato.streaming.blt import BLT
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
    ResidualSumQuery,
    TreeCumulativeSumQuery,
    TreeResidualSumQuery,
    clip_l2,
)
from sfumato.streaming.ranges import NoisyTree, TreeRangeSumQuery, build_tree_from_leaf
from sfumato.streaming.restarts import (
    PeriodicRoundRestartIndicator,
    PeriodicTimeRestartIndicator,
    RestartIndicator,
    RestartQuery,
)
from sfumato.streaming.sensitivity import squared_sensitivity, squared_tree_sensitivity
from sfumato.streaming.toeplitz import coefficients, decoder, dyadic_coefficients
from sfumato.streaming.tree import EfficientTreeAggregator, TreeAggregator, TreeState, get_step_idx

__all__ = [
    "Aggregator",
    "BLT",
    "BLTAggregator",
    "CumulativeSumQuery",
    "EfficientTreeAggregator",
    "GaussianNoiseGenerator",
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
